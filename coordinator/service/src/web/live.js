// Replaces parts of the page when they change. Without it, the page shows the state at loading.
(() => {
  const from = document.body.dataset.events;
  if (!from) return;
  const live = document.getElementById("live");
  const shown = new Map();

  const replace = ({ id, html }) => {
    const part = document.getElementById(id);
    if (!part || shown.get(id) === html) return;
    shown.set(id, html);
    const focused = document.activeElement?.id;
    const places = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    part.innerHTML = html;
    part.querySelectorAll(".scroll").forEach((box, at) => { box.scrollLeft = places[at] ?? 0; });
    if (focused && part.querySelector(`#${CSS.escape(focused)}`)) {
      document.getElementById(focused).focus({ preventScroll: true });
    }
  };

  const open = () => {
    const events = new EventSource(from);
    events.onopen = () => { live.textContent = "live"; };
    events.addEventListener("part", (event) => replace(JSON.parse(event.data)));
    events.onerror = () => {
      live.textContent = "connection lost, trying again";
      // A browser gives up if the response is not a stream: the service is full, or the user has to log in.
      if (events.readyState === EventSource.CLOSED) setTimeout(open, 5000);
    };
  };
  open();
})();

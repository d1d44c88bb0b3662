// Sorts and filters the sentences. Without it, they are a plain list in the order of the text.
(() => {
  const $ = (id) => document.getElementById(id);
  const controls = $("controls");
  if (!controls) return;
  const plain = (text) => text.toLowerCase().replace(/\s+/g, "");
  const list = document.querySelector("ol.sentences");
  const rows = [...list.children].map((item, place) => {
    const text = item.querySelector(".found").textContent.toLowerCase();
    const { errors = 0, doubt = 0 } = item.dataset;
    return { item, place, text, plain: plain(text), errors: Number(errors), doubt: Number(doubt) };
  });
  const keys = { text: () => 0, errors: (row) => -row.errors, unsure: (row) => -row.doubt, sure: (row) => row.doubt };
  const update = () => {
    const key = keys[$("order").value];
    const wanted = $("search").value.toLowerCase();
    const isShown = ({ text, plain: letters, errors }) =>
      (!$("wrong")?.checked || errors > 0) && (text.includes(wanted) || letters.includes(plain(wanted)));
    const sorted = [...rows].sort((a, b) => key(a) - key(b) || a.place - b.place);
    for (const row of rows) row.item.hidden = !isShown(row);
    list.append(...sorted.map(({ item }) => item));
    $("shown").textContent = `${rows.filter(isShown).length} of ${rows.length} shown`;
  };
  controls.addEventListener("input", update);
  controls.hidden = false;
  update();
})();

// Annotation of lines. All that is said is sent at once, and kept by the server; this script only knows what it shows.
(() => {
  const SHOWN = 50; // lines and words shown at a time
  const $ = (id) => document.getElementById(id);
  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const status = (text, bad = false) => { $("status").textContent = text; $("status").className = bad ? "bad" : ""; };

  const refusal = document.body.dataset.refusal; // why the reader may change nothing
  let state; // as the server sent it, with what was said since
  let view = { name: "suggested", lines: [] };
  let shown = SHOWN;
  const said = []; // for undo: [line, what was known before, ends before]

  const segments = ({ symbols, ends }) => {
    let start = 0;
    return ends.map((end) => symbols.slice(start, start = end).join(state.separators[0]));
  };
  const counts = () => {
    const found = new Map();
    for (const line of state.lines) for (const word of segments(line)) found.set(word, (found.get(word) ?? 0) + line.times);
    return found;
  };
  // What is known of a line, a letter for each gap: 1 for a boundary, 0 for none, ? if nothing is known; null if the line is not annotated.
  const whole = ({ symbols }, ends) => symbols.slice(1).map((_, place) => ends.includes(place + 1) ? "1" : "0").join("");
  const isAnnotated = ({ known }) => known !== null;
  const isWhole = ({ known }) => known !== null && !known.includes("?");

  // An answer of status 202 says that work goes on; the request is sent again.
  const request = async (path, body) => {
    for (;;) {
      const answer = await fetch(path, body === undefined ? {} : {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
      }).catch((error) => { throw new Error(`${error.message}: no answer; is the program still running?`); });
      if (answer.status === 202) {
        await new Promise((resume) => setTimeout(resume, 500));
        continue;
      }
      if (answer.ok) return answer.json();
      const isPage = answer.headers.get("content-type")?.startsWith("text/html");
      throw Object.assign(new Error(isPage ? `${answer.status} ${answer.statusText}; reload the page` : await answer.text()), { isAnswer: true });
    }
  };
  const failed = (error) => status(error.message || error, true);

  // Changes are sent one after another, in the order in which they were made.
  let sent = Promise.resolve();
  let waiting = 0, isStale = false;
  const say = (at, known, ends, isUndo = false) => {
    if (refusal) return status(refusal, true);
    const line = state.lines[at];
    if (!isUndo) said.push([at, line.known, line.ends]);
    line.known = known;
    line.ends = ends;
    $("undo").disabled = said.length === 0;
    drawLine(at);
    drawWords();
    waiting += 1;
    sent = sent.then(async () => {
      waiting -= 1;
      const kept = await request("annotations", { line: at, known, version: state.version });
      state.version = kept.version;
      status(`Kept: ${state.lines.filter(isAnnotated).length} lines are annotated.`);
      isStale ||= kept.stale;
      if (isStale && waiting === 0) {
        isStale = false;
        await load();
        status("Another page or program has changed the annotations; this page shows all of them now.");
      }
    }).catch(async (error) => {
      // What was refused is not kept, so that the page shows what is.
      if (error.isAnswer) await load().catch(() => {});
      failed(error);
    });
  };
  const sayWhole = (at, ends) => say(at, whole(state.lines[at], ends), ends);
  const toggle = (at, gap) => {
    const { ends } = state.lines[at];
    sayWhole(at, ends.includes(gap) ? ends.filter((end) => end !== gap) : [...ends, gap].sort((a, b) => a - b));
  };
  const undo = () => {
    const last = said.pop();
    if (!last) return;
    const [at, known, ends] = last;
    say(at, known, ends, true);
    choose(at);
  };

  const row = (at) => document.querySelector(`#lines li[data-line="${at}"]`);
  const current = () => document.querySelector("#lines li.current");
  const choose = (at, gap) => {
    const next = row(at);
    if (!next) return;
    current()?.classList.remove("current");
    next.classList.add("current");
    const gaps = [...next.querySelectorAll(".gap")];
    const target = gaps.find((button) => Number(button.dataset.gap) === gap) ?? gaps[0] ?? next.querySelector(".say");
    document.querySelectorAll('.gap[tabindex="0"]').forEach((button) => { button.tabIndex = -1; });
    target.tabIndex = 0;
    target.focus();
  };
  const step = (by) => {
    const rows = [...document.querySelectorAll("#lines li")];
    const next = rows[Math.max(0, rows.indexOf(current()) + by)];
    if (next) choose(Number(next.dataset.line));
    next?.scrollIntoView({ block: "nearest" });
  };

  const drawn = (at) => {
    const line = state.lines[at];
    const text = element("span", { className: "text", dir: "auto" });
    line.symbols.forEach((symbol, place) => {
      text.append(element("span", { textContent: symbol }));
      const gap = place + 1;
      if (gap === line.symbols.length) return;
      const isBoundary = line.ends.includes(gap);
      const isKnown = isAnnotated(line) && line.known[place] !== "?";
      const percent = isKnown ? 0 : line.probabilities[place] ?? 0;
      const button = element("button", { className: "gap", tabIndex: -1, title: isKnown ? "known" : `${percent} %` });
      button.classList.toggle("known", isKnown && !isWhole(line));
      button.dataset.gap = gap;
      button.setAttribute("aria-pressed", isBoundary);
      button.setAttribute("aria-label", `boundary between ${symbol} and ${line.symbols[gap]}`);
      button.style.setProperty("--p", `${percent}%`);
      text.append(button);
    });
    const item = element("li", { className: isWhole(line) ? "said" : isAnnotated(line) ? "partly" : "" }, text);
    item.dataset.line = at;
    const words = isWhole(line) ? "Not annotated" : "This line is right";
    item.append(element("button", { className: "say", textContent: words, disabled: Boolean(refusal) }));
    return item;
  };
  const drawLine = (at) => {
    const old = row(at);
    if (!old) return;
    const gap = Number(document.activeElement?.dataset.gap), isCurrent = old.classList.contains("current");
    const onSay = document.activeElement?.classList.contains("say");
    const next = drawn(at);
    old.replaceWith(next);
    if (!isCurrent) return;
    choose(at, gap);
    if (onSay) next.querySelector(".say").focus();
  };
  const VIEWS = {
    suggested: ["Suggested lines", () => state.suggested],
    annotated: ["Annotated lines", () => state.lines.flatMap((line, at) => isAnnotated(line) ? [at] : [])],
    all: ["All lines", () => state.lines.map((_, at) => at)],
  };
  const show = (name, title, lines) => {
    view = { name, lines };
    shown = SHOWN;
    $("shown").textContent = `${title} (${lines.length})`;
    for (const button of $("views").children) button.setAttribute("aria-pressed", button.dataset.view === name);
    drawLines();
  };
  const showView = (name) => show(name, VIEWS[name][0], VIEWS[name][1]());
  const drawLines = () => {
    $("lines").replaceChildren(...view.lines.slice(0, shown).map(drawn));
    $("more").hidden = view.lines.length <= shown;
    const first = document.querySelector("#lines li");
    first?.classList.add("current");
    const gap = first?.querySelector(".gap");
    if (gap) gap.tabIndex = 0;
  };
  const drawWords = () => {
    const wanted = $("search").value;
    const found = [...counts()].filter(([word]) => word.includes(wanted));
    found.sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
    $("words").replaceChildren(...found.slice(0, 4 * SHOWN).map(([word, n]) => {
      const button = element("button", {}, element("span", { textContent: word }), element("span", { className: "n", textContent: n }));
      button.dataset.word = word;
      return element("li", {}, button);
    }));
  };

  const load = async () => {
    state = await request("state");
    showView(view.name in VIEWS ? view.name : "suggested");
    drawWords();
  };
  const learn = async () => {
    $("learn").disabled = true;
    const begun = performance.now();
    const seconds = () => ((performance.now() - begun) / 1000).toFixed(1);
    const clock = setInterval(() => status(`Learning, ${seconds()} s`), 100);
    try {
      await sent;
      const words = counts();
      const lines = state.lines.map((line) => line.ends.join());
      state = await request("learned", {});
      const now = counts();
      const only = (a, b) => [...a].filter(([word]) => !b.has(word)).sort(([, n], [, m]) => m - n).map(([word, n]) => `${word} (${n})`);
      const changed = state.lines.flatMap((line, at) => line.ends.join() === lines[at] ? [] : [at]);
      const list = (title, words) => element("p", {}, element("b", { textContent: `${title}: ${words.length}. ` }), words.slice(0, 30).join(", "));
      $("news").replaceChildren(
        element("p", { textContent: `${changed.length} lines have changed.` }),
        list("Words gained", only(now, words)), list("Words lost", only(words, now)),
        element("button", { id: "changed", textContent: "Show the changed lines", disabled: changed.length === 0, onclick: () => show("changed", "Changed lines", changed) }),
      );
      $("news").hidden = false;
      showView("suggested");
      drawWords();
      clearInterval(clock);
      status(`Learned in ${seconds()} s.`);
    } catch (error) {
      clearInterval(clock);
      failed(error);
    }
    $("learn").disabled = Boolean(refusal);
  };

  $("lines").addEventListener("click", ({ target }) => {
    const item = target.closest("li");
    if (!item) return;
    const at = Number(item.dataset.line), line = state.lines[at];
    const gap = Number(target.dataset.gap);
    choose(at, gap);
    if (gap) toggle(at, gap);
    else if (target.classList.contains("say")) isWhole(line) ? say(at, null, line.ends) : sayWhole(at, line.ends);
  });
  $("words").addEventListener("click", ({ target }) => {
    const word = target.closest("button")?.dataset.word;
    if (word === undefined) return;
    const lines = state.lines.flatMap((line, at) => segments(line).includes(word) ? [at] : []);
    show("word", `Lines with ${word}`, lines);
  });
  $("views").addEventListener("click", ({ target }) => { if (target.dataset.view) showView(target.dataset.view); });
  $("search").addEventListener("input", drawWords);
  $("more").addEventListener("click", () => { shown += SHOWN; drawLines(); });
  $("learn").addEventListener("click", learn);
  $("undo").addEventListener("click", undo);
  document.addEventListener("keydown", (event) => {
    if (!state || event.target === $("search") || event.ctrlKey || event.metaKey || event.altKey) return;
    const caret = (by) => {
      const line = current();
      if (!line) return;
      const gaps = [...line.querySelectorAll(".gap")];
      const sign = getComputedStyle(line.querySelector(".text")).direction === "rtl" ? -by : by;
      const at = gaps.indexOf(document.activeElement);
      const next = at < 0 ? gaps[0] : gaps[Math.min(gaps.length - 1, Math.max(0, at + sign))];
      if (next) choose(Number(line.dataset.line), Number(next.dataset.gap));
    };
    const right = () => {
      const line = current();
      if (line) sayWhole(Number(line.dataset.line), state.lines[Number(line.dataset.line)].ends);
    };
    const keys = {
      ArrowLeft: () => caret(-1), ArrowRight: () => caret(1), ArrowDown: () => step(1), n: () => step(1), ArrowUp: () => step(-1),
      p: () => step(-1), u: undo, r: right,
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  load().then(() => status("Ready."), failed);
})();

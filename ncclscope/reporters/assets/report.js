"use strict";
// Shows the lines of the mark or the row that is pointed at or focused. Without this script the marks' titles do.
(() => {
  const line = document.getElementById("line");
  if (!line) return;
  const rest = line.textContent;
  const title = (mark) => mark.querySelector("title").textContent;
  const marks = (row) => [...row.querySelectorAll("use")];
  const show = (text) => { line.textContent = text || rest; };
  const pick = (mark) => {
    document.querySelectorAll("use.on").forEach((m) => m.classList.remove("on"));
    if (mark) { mark.classList.add("on"); show(title(mark)); }
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest(".row use");
    if (mark) show(title(mark));
  });
  document.addEventListener("focusin", (event) => {
    const row = event.target.closest(".row svg");
    pick(null);
    show(row && [row.getAttribute("aria-label"), ...marks(row).map(title)].join("\n"));
  });
  document.addEventListener("keydown", (event) => {
    const row = event.target.closest(".row svg");
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (row && step) {
      const all = marks(row);
      const at = all.findIndex((m) => m.classList.contains("on"));
      pick(all[Math.max(0, Math.min(all.length - 1, at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step))]);
      event.preventDefault();
    } else if (row && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const rows = [...document.querySelectorAll(".row svg[tabindex]")].filter((r) => r.checkVisibility());
      const next = rows[rows.indexOf(row) + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) next.focus();
      event.preventDefault();
    }
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.finding:not([open])")];
    closed.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));
})();

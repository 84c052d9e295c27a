// Before the first paint: the paper the reader chose last, if the browser keeps such things for files.
(() => {
  try {
    const kept = localStorage.getItem("unseen-paper");
    if (kept === "light" || kept === "dark") document.documentElement.dataset.paper = kept;
  } catch { /* no storage: the system's choice */ }
})();

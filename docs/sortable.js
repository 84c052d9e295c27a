// Tables in a <div class="sortable"> are sorted by the column whose heading is clicked, or chosen with Enter; again: the other way.
for (const table of document.querySelectorAll(".sortable table")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.style.cssText = "all: unset; cursor: pointer";
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const way = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
      const text = (row) => row.cells[column].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        // Empty cells stay last.
        if (!text(a) || !text(b)) return !text(a) - !text(b);
        return way * text(a).localeCompare(text(b), "en", { numeric: true });
      });
      body.append(...rows);
    });
  });
}

'use strict';
(function () {
  // What a cell sorts by: its number if it has one; words after numbers, nothing last.
  function key(cell) {
    const text = cell.dataset.value === undefined ? cell.textContent : cell.dataset.value;
    const number = Number(text);
    if (text === '' || text === 'nan') return [2, 0, ''];
    return Number.isNaN(number) ? [1, 0, text] : [0, number, ''];
  }

  function compare(a, b) {
    if (a[0] !== b[0]) return a[0] - b[0];
    return a[0] === 0 ? a[1] - b[1] : a[2].localeCompare(b[2]);
  }

  function sortBy(table, header) {
    const column = Array.prototype.indexOf.call(header.parentNode.children, header);
    const down = header.getAttribute('aria-sort') === 'ascending';
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row, at) => ({ row, at, key: key(row.cells[column]) }));
    rows.sort((a, b) => {
      if (a.key[0] === 2 || b.key[0] === 2) return a.key[0] - b.key[0] || a.at - b.at;
      return (down ? -1 : 1) * compare(a.key, b.key) || a.at - b.at;
    });
    for (const other of header.parentNode.children) other.removeAttribute('aria-sort');
    header.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    for (const item of rows) body.appendChild(item.row);
  }

  const tables = Array.from(document.querySelectorAll('table.data'));
  const chosen = {};

  function axisColumns(table) {
    const columns = {};
    Array.from(table.tHead.rows[0].cells).forEach((cell, at) => {
      if (cell.dataset.axis !== undefined) columns[cell.dataset.axis] = at;
    });
    return columns;
  }

  function applyFilters() {
    for (const table of tables) {
      const columns = axisColumns(table);
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const fits = Object.keys(chosen).every(axis =>
          chosen[axis] === '' || columns[axis] === undefined || row.cells[columns[axis]].dataset.value === chosen[axis]);
        row.classList.toggle('hidden', !fits);
        shown += fits;
      }
      const count = document.querySelector('[data-count-of="' + table.id + '"]');
      count.textContent = shown + ' of ' + table.tBodies[0].rows.length + ' rows';
    }
  }

  function addFilter(place, axis, values) {
    const label = document.createElement('label');
    const select = document.createElement('select');
    label.append(axis, select);
    select.dataset.filter = axis;
    select.append(new Option('all', ''));
    for (const value of values) select.append(new Option(value, value));
    select.addEventListener('change', () => { chosen[axis] = select.value; applyFilters(); });
    place.append(label);
  }

  const place = document.querySelector('.filters');
  const values = {};
  for (const table of tables) {
    const columns = axisColumns(table);
    for (const axis of Object.keys(columns)) {
      values[axis] = values[axis] || new Set();
      for (const row of table.tBodies[0].rows) values[axis].add(row.cells[columns[axis]].dataset.value);
    }
    for (const header of table.tHead.rows[0].cells) {
      header.querySelector('button').addEventListener('click', () => sortBy(table, header));
    }
  }
  for (const axis of Object.keys(values)) {
    if (values[axis].size > 1 && values[axis].size <= 500) addFilter(place, axis, values[axis]);
  }
  applyFilters();

  document.querySelector('.theme').addEventListener('click', () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });
})();

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
    filterFigures();
    showHeadline();
  }

  // What varies and its value, as in the legends of the figures: "ref", "z = 1", "4 malicious".
  function setting(axis, value) {
    if (axis === 'rule' || axis === 'attack') return value;
    if (axis === 'malicious' || axis === 'agents') return value + ' ' + axis;
    return axis.split('.').pop().replace(/_/g, ' ') + ' = ' + value;
  }

  // Lines of the figures are named in the legend by what varies: those of other values than the chosen ones are hidden, together with what
  // belongs to them and has no name (the band before a line, the triangles after it).
  function isOther(title, axis) {
    if (!chosen[axis] || !values[axis]) return false;
    return title.split(', ').some(part => part !== setting(axis, chosen[axis]) &&
      Array.from(values[axis]).some(value => part === setting(axis, value)));
  }

  function filterFigures() {
    for (const name of ['curves', 'final']) {
      const groups = Array.from(document.querySelectorAll('#figure-' + name + ' g[id^="gnuplot_plot_"]'));
      const titles = groups.map(group => (group.querySelector('text') || { textContent: '' }).textContent.trim()); // of the legend
      const named = titles.map(title => title !== '');
      groups.forEach((group, at) => {
        // a band stands before its line in the figure of curves; triangles stand behind theirs
        const isBand = !named[at] && named[at + 1] && (at === 0 || named[at - 1]) && name === 'curves' && !/<use/.test(group.innerHTML);
        const owner = named[at] ? at : isBand ? at + 1 : at - 1;
        const title = named[owner] ? titles[owner] : '';
        group.classList.toggle('hidden', title !== '' && Object.keys(chosen).some(axis => isOther(title, axis)));
      });
    }
  }

  // ---- the headline: rules by settings ----

  function numberAt(row, column) {
    return column === undefined ? NaN : Number(row.cells[column].dataset.value || 'nan');
  }

  // What is compared: the accuracy, or the first metric in decibels, above the oracle where that was run, or the loss.
  function chooseMetric(columns) {
    const rows = Array.from(document.querySelectorAll('#summary tbody tr'));
    if (rows.some(row => Number.isFinite(numberAt(row, columns.accuracy)))) { // problems of others may leave it out
      return { title: 'Test accuracy [%]', best: Math.max, digits: 2,
        value: row => 100 * numberAt(row, columns.accuracy), error: row => 100 * numberAt(row, columns.accuracy_se) };
    }
    const name = Object.keys(columns).find(column => column.endsWith('_db') && column !== 'theory_db' && column !== 'oracle_db');
    if (name === undefined && columns.loss !== undefined) {
      return { title: 'Test loss', best: Math.min, digits: 4,
        value: row => numberAt(row, columns.loss), error: row => numberAt(row, columns.loss_se) };
    }
    if (name === undefined) return null;
    const linear = name.slice(0, -3);
    const decibels = (row, mean, error) => 10 / Math.LN10 * numberAt(row, columns[error]) / numberAt(row, columns[mean]);
    const above = rows.length > 0 && rows.every(row => Number.isFinite(numberAt(row, columns.oracle_db)));
    return { title: linear.toUpperCase() + (above ? ' above the oracle [dB]' : ' [dB]'), best: Math.min, digits: 1,
      value: row => numberAt(row, columns[name]) - (above ? numberAt(row, columns.oracle_db) : 0),
      error: row => Math.hypot(decibels(row, linear, linear + '_se'), above ? decibels(row, 'oracle', 'oracle_se') : 0) };
  }

  function headlineCell(row, metric, best, note) {
    const cell = document.createElement('td');
    const value = row ? metric.value(row) : NaN;
    const error = row ? metric.error(row) : NaN;
    const shown = Number.isFinite(value) ? value.toFixed(metric.digits).replace(/^-(0\.0+)$/, '$1') : '';
    cell.dataset.value = Number.isFinite(value) ? String(value) : '';
    cell.textContent = shown + (Number.isFinite(error) && shown ? ' \u00b1 ' + error.toFixed(metric.digits) : '') + (note ? ' *' : '');
    cell.title = (shown ? value.toPrecision(6) + ' \u00b1 ' + error.toPrecision(2) : 'no value') + (note ? '; ' + note : '');
    if (shown && value === best) {
      cell.classList.add('best');
      cell.append(Object.assign(document.createElement('span'), { className: 'words', textContent: ' (best)' }));
    }
    return cell;
  }

  // Headings stand where the values below them do: words at the left, numbers at the right.
  function alignHeads(table) {
    const first = table.tBodies[0].rows[0];
    Array.from(table.tHead.rows[0].cells).forEach((head, at) => {
      head.classList.toggle('word', first !== undefined && (first.cells[at].classList.contains('word') || first.cells[at].tagName === 'TH'));
    });
  }

  function headerCell(text) {
    const header = document.createElement('th');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    header.scope = 'col';
    header.append(button);
    return header;
  }

  const HEADLINE_COLUMNS = 24;

  function showHeadline() {
    const place = document.getElementById('headline');
    const summary = document.getElementById('summary');
    place.replaceChildren();
    if (!summary) return;
    const columns = {};
    Array.from(summary.tHead.rows[0].cells).forEach((cell, at) => { columns[cell.textContent] = at; });
    const axes = Object.keys(axisColumns(summary));
    const metric = chooseMetric(columns);
    const shown = Array.from(summary.tBodies[0].rows).filter(row => !row.classList.contains('hidden'));
    const side = axes.includes('rule') ? 'rule' : axes[0];
    if (!metric || side === undefined || shown.length === 0) return;
    const heading = row => axes.filter(axis => axis !== side && values[axis].size > 1)
      .map(axis => setting(axis, row.cells[columns[axis]].dataset.value)).join(', ') || 'steady state';
    const settings = Array.from(new Set(shown.map(heading)));
    const sides = Array.from(new Set(shown.map(row => row.cells[columns[side]].dataset.value)));
    const title = Object.assign(document.createElement('h2'), { textContent: metric.title, id: 'headline-title' });
    const hint = Object.assign(document.createElement('p'), { className: 'count' });
    place.append(title, hint);
    if (settings.length > HEADLINE_COLUMNS) {
      hint.textContent = settings.length + ' settings are too many for one table: choose some with the filters above.';
      return;
    }
    hint.textContent = 'Mean \u00b1 standard error of the steady state; the best of each column is marked.';
    const table = document.createElement('table');
    const head = table.createTHead().insertRow();
    head.append(headerCell(side), ...settings.map(headerCell));
    const body = table.createTBody();
    const at = (name, setting) => shown.find(row => row.cells[columns[side]].dataset.value === name && heading(row) === setting);
    const best = settings.map(setting => {
      const found = sides.map(name => at(name, setting)).filter(row => row).map(metric.value).filter(Number.isFinite);
      return found.length > 1 ? metric.best(...found) : NaN;
    });
    let noted = false;
    for (const name of sides) {
      const line = body.insertRow();
      const first = Object.assign(document.createElement('th'), { scope: 'row', textContent: name });
      first.dataset.value = name;
      line.append(first);
      settings.forEach((setting, i) => {
        const row = at(name, setting);
        const note = row && columns.note !== undefined ? row.cells[columns.note].dataset.value : '';
        noted = noted || note !== '';
        line.append(headlineCell(row, metric, best[i], note));
      });
    }
    if (noted) hint.textContent += ' * diverged or not yet steady: see the note in the steady-state table below.';
    alignHeads(table);
    for (const header of head.cells) header.querySelector('button').addEventListener('click', () => sortBy(table, header));
    const scroll = document.createElement('div');
    scroll.className = 'scroll';
    scroll.tabIndex = 0;
    scroll.setAttribute('role', 'region');
    scroll.setAttribute('aria-labelledby', 'headline-title');
    scroll.append(table);
    place.append(scroll);
  }

  function addFilter(place, axis, values) {
    const label = document.createElement('label');
    const select = document.createElement('select');
    label.append(axis.replace(/[._]/g, ' '), select);
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
    alignHeads(table);
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

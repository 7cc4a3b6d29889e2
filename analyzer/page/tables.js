/*
 * tables.js: the report's tables: sortable, filtered together with the timeline, copied as tab-separated values. A table is
 * a row of TABLES; a column's unit follows from its name, as in docs/REPORT_FORMAT.md.
 */
import {announce, copy, el, empty, tsvLine} from './dom.js';
import {bytes, count, duration, plural} from './format.js';

const MOST_ROWS = 200;

/* name, the key in the report, columns; the column by which it is filtered, by thread, function and rank. */
const TABLES = [
	{name: 'Calls', key: 'calls', columns: ['function', 'count', 'failed', 'total_ns', 'median_ns', 'p99_ns', 'max_ns'], function: 'function'},
	{name: 'By thread', key: 'accounts', columns: ['process', 'thread', 'function', 'calls', 'total_ns', 'expected_ns', 'lost_ns', 'lock_ns', 'gpu_hidden_ns', 'gpu_intended_ns', 'ioctl_ns', 'not_running_ns', 'unexplained_ns'], thread: 'thread', function: 'function'},
	{name: 'Sites', key: 'findings', columns: ['id', 'function', 'where', 'count', 'total_ns', 'cost_ns', 'gain_high_ns', 'severity'], function: 'function'},
	{name: 'Worst calls', key: 'worst_calls', columns: ['function', 'thread', 'device', 'at_ns', 'duration_ns', 'expected_ns', 'lost_ns', 'what', 'where', 'range'], thread: 'thread', function: 'function', at: 'at_ns'},
	{name: 'Locks', key: 'locks', columns: ['name', 'kind', 'place', 'process', 'waits', 'waited_ns', 'longest_ns', 'waking_ns', 'waiters', 'holders', 'first_function'], function: 'first_function', find: 'name'},
	{name: 'Threads', key: 'threads', columns: ['process', 'tid', 'name', 'count', 'counted', 'total_ns', 'copied_bytes'], thread: 'tid', choose: 'thread'},
	{name: 'Ranges', key: 'ranges', columns: ['name', 'domain', 'count', 'ns', 'longest_ns', 'calls', 'calls_ns', 'lost_ns', 'gpu_ns', 'lock_ns', 'gpu_idle_ns'], find: 'name'},
	{name: 'Ranks', key: 'ranks', columns: ['rank', 'host', 'process', 'operations', 'wait_ns', 'caused_ns', 'late_ns', 'held_ns', 'last_count', 'gpu_late_ns', 'align_error_ns'], rank: 'rank', choose: 'rank'},
	{name: 'Collectives', key: 'collectives', columns: ['comm_name', 'func', 'count', 'bytes', 'ranks', 'wait_ns', 'late_ns', 'transfer_ns']},
	{name: 'Expectations', key: 'expectations', columns: ['function', 'class', 'count', 'total_ns', 'expected_ns', 'spread_ns', 'samples', 'source'], function: 'function'},
];

function shown(column, value) {
	if (value === null || value === undefined)
		return '';
	return column === 'ns' || column.endsWith('_ns') ? duration(value) : column.endsWith('bytes') ? bytes(value) :
		typeof value === 'number' && !['tid', 'thread', 'pid', 'rank', 'device'].includes(column) ? count(value) : String(value);
}

function title(column) {
	return column.replace(/_ns$|^ns$/, '').replace(/_/g, ' ') || 'time';
}

export class Tables {
	constructor(view, report, show) {
		Object.assign(this, {view, report, goTo: show});
		this.tables = TABLES.filter((table) => report[table.key]?.length);
		this.table = this.tables[0];
		this.sort = null; /* {column, down} */
		this.tabs = el('div', {class: 'tabs', role: 'tablist', 'aria-label': 'Tables'});
		this.body = el('div', {class: 'table-box', tabindex: '0', role: 'tabpanel', 'aria-label': 'Table'});
		view.listen('filter', () => this.fill());
	}

	element() {
		const section = el('section', {id: 'tables', 'aria-label': 'Tables'}, el('h2', {}, 'Tables'),
			el('div', {class: 'toolbar'}, this.tabs, el('button', {type: 'button', class: 'copy-table', onclick: (event) => copy(this.tsv(), event.target)}, 'Copy as TSV')), this.body);
		this.fill();
		return this.tables.length ? section : null;
	}

	/* The rows that the filter lets through, sorted. */
	rows() {
		const {table, view: {filter, model}} = this;
		let rows = this.report[table.key];
		const lanes = filter.lanes && [...filter.lanes].map((lane) => model.lanes[lane]);
		if (filter.function !== null && table.function)
			rows = rows.filter((row) => row[table.function] === model.names[filter.function]);
		if (lanes && table.thread)
			rows = rows.filter((row) => lanes.some((lane) => lane.tid === row[table.thread] && (!row.process || !lane.process || lane.process === row.process)));
		if (lanes && table.rank)
			rows = rows.filter((row) => lanes.some((lane) => lane.rank === row[table.rank]));
		if (this.sort) {
			const {column, down} = this.sort;
			const value = (row) => row[column] ?? (typeof row[column] === 'number' ? -1 : '');
			rows = [...rows].sort((a, b) => {
				const [x, y] = [value(a), value(b)];
				return (down ? -1 : 1) * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', {numeric: true}));
			});
		}
		return rows;
	}

	columns() {
		const rows = this.report[this.table.key];
		return this.table.columns.filter((column) => rows.some((row) => row[column] !== null && row[column] !== undefined && row[column] !== ''));
	}

	tsv() {
		const columns = this.columns();
		return tsvLine(columns) + this.rows().map((row) => tsvLine(columns.map((column) => row[column]))).join('');
	}

	fill() {
		if (!this.table)
			return;
		empty(this.tabs).append(...this.tables.map((table) => el('button', {type: 'button', role: 'tab', 'aria-selected': String(table === this.table), onclick: () => {
			this.table = table;
			this.sort = null;
			this.fill();
		}}, table.name)));
		const columns = this.columns();
		const rows = this.rows();
		empty(this.body).append(el('table', {}, el('thead', {}, el('tr', {}, columns.map((column) => this.head(column, rows)))),
			el('tbody', {}, rows.slice(0, MOST_ROWS).map((row) => this.row(row, columns)))));
		const leftOut = this.report.rows_left_out?.[this.table.key];
		const said = [!rows.length ? 'No row fits the filter.' : rows.length > MOST_ROWS ? `${MOST_ROWS} of ${count(rows.length)} rows are shown; copied are all.` : null,
			leftOut ? `The file leaves out ${plural(leftOut, 'row')} at the end of this table; cudaspy report --format=json has them.` : null].filter((text) => text);
		if (said.length)
			this.body.append(el('p', {class: 'hint'}, said.join(' ')));
	}

	isNumber(column, rows) {
		return rows.length > 0 && rows.every((row) => typeof row[column] === 'number' || row[column] === null);
	}

	head(column, rows) {
		const sorted = this.sort?.column === column ? this.sort.down ? 'descending' : 'ascending' : 'none';
		const arrow = {descending: ' ▾', ascending: ' ▴', none: ''}[sorted];
		return el('th', {scope: 'col', 'aria-sort': sorted, class: this.isNumber(column, rows) ? 'number' : null}, el('button', {type: 'button', onclick: () => {
			this.sort = {column, down: this.sort?.column === column ? !this.sort.down : this.isNumber(column, rows)};
			this.fill();
			announce(`sorted by ${title(column)}`);
			[...this.body.querySelectorAll('th button')].find((button) => button.dataset.column === column)?.focus();
		}, 'data-column': column}, title(column) + arrow));
	}

	row(row, columns) {
		return el('tr', {}, columns.map((column, i) => {
			const text = shown(column, row[column]);
			const action = this.action(row, column, i);
			return el('td', {class: typeof row[column] === 'number' ? 'number' : null}, action ? el('button', {type: 'button', class: 'link', onclick: action}, text) : text);
		}));
	}

	/* What a click on a cell does: functions, threads and ranks filter; times and locks lead to the timeline. */
	action(row, column) {
		const {table, view} = this;
		const {model} = view;
		if (column === table.at)
			return () => this.goTo(row);
		if (column === table.function && row[column]) {
			const name = model.names.indexOf(row[column]);
			return name < 0 ? null : () => view.setFilter({...view.filter, function: name, text: `only ${row[column]}`});
		}
		if (column === table.thread) {
			const lane = model.threadLane(row[column], row.process);
			return lane < 0 ? null : () => view.setFilter({...view.filter, lanes: new Set([lane]), text: `only ${model.laneLongName(lane)}`});
		}
		if (column === table.rank) {
			const lanes = model.lanes.map((of, lane) => of.rank === row.rank ? lane : -1).filter((lane) => lane >= 0);
			return lanes.length ? () => view.setFilter({...view.filter, lanes: new Set(lanes), text: `only rank ${row.rank}`}) : null;
		}
		return column === table.find && row[column] ? () => this.goTo(null, row[column]) : null;
	}
}

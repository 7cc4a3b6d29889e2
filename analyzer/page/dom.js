/*
 * dom.js: elements made from data. Names of a trace are hostile: they become text nodes and attributes, never markup.
 * Used by all that shows something outside of a canvas.
 */

/* el('button', {class: 'x', onclick: f, 'aria-label': 'y'}, 'text', child, …): null children are left out. */
export function el(tag, properties, ...children) {
	const element = document.createElement(tag);
	for (const [key, value] of Object.entries(properties || {}))
		if (key.startsWith('on'))
			element.addEventListener(key.slice(2), value);
		else if (value === true)
			element.setAttribute(key, '');
		else if (value !== null && value !== undefined && value !== false)
			element.setAttribute(key, value);
	element.append(...children.flat().filter((child) => child !== null && child !== undefined));
	return element;
}

export function empty(element) {
	element.replaceChildren();
	return element;
}

/* Says something to who hears the page instead of seeing it. */
export function announce(text) {
	document.getElementById('live').textContent = text;
}

/* What was copied last: what tests look at. */
export const clipboard = {text: ''};

/* Into the clipboard; by the old way where the new one is not allowed. `button` says for a moment that it is done. */
export async function copy(text, button) {
	clipboard.text = text;
	try {
		await navigator.clipboard.writeText(text);
	} catch (refused) {
		const area = el('textarea', {class: 'hidden-text', 'aria-hidden': 'true'});
		area.value = text;
		document.body.append(area);
		area.select();
		document.execCommand('copy');
		area.remove();
	}
	announce('Copied');
	if (!button || button.dataset.label)
		return;
	button.dataset.label = button.textContent;
	button.textContent = 'Copied';
	setTimeout(() => {
		button.textContent = button.dataset.label;
		delete button.dataset.label;
	}, 1200);
}

/* A row of a table or matrix as one line of tab-separated values: no value ends a line or a cell. */
export function tsvLine(values) {
	return values.map((value) => String(value ?? '').replace(/[\t\r\n]+/g, ' ')).join('\t') + '\n';
}

/* A swatch of an ink (palette.js), with its pattern: CSS has both, by the class. */
export function swatch(ink) {
	return el('span', {class: `swatch ink-${ink}`, 'aria-hidden': 'true'});
}

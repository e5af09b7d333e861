/* global rank, wordsOf */
// @ts-nocheck: a script for browsers, whose types the configuration of TypeScript leaves out.
// The script of the documentation site. `rank` and `wordsOf` are put before it; see assets.ts.

const MAX_RESULTS = 12;
const root = document.documentElement.dataset.root;
const box = document.querySelector('.search');
const input = document.getElementById('search');
const list = document.getElementById('results');
box.hidden = false;

/** The promise of the search index, which is loaded when the search is used for the first time. */
let loading;
function loadIndex() {
	loading ??= new Promise(resolve => {
		const script = document.createElement('script');
		script.src = `${root}search-index.js`;
		script.onload = resolve;
		document.head.append(script);
	});
	return loading;
}

let active = -1;
function activate(at) {
	const options = list.children;
	options[active]?.setAttribute('aria-selected', 'false');
	active = at;
	const option = options[at];
	if (!option) return input.removeAttribute('aria-activedescendant');
	option.setAttribute('aria-selected', 'true');
	option.scrollIntoView({ block: 'nearest' });
	input.setAttribute('aria-activedescendant', option.id);
}

function show(found) {
	list.replaceChildren(
		...found.map(([url, title, page], at) => {
			const option = document.createElement('li');
			option.id = `result-${at}`;
			option.setAttribute('role', 'option');
			option.setAttribute('aria-selected', 'false');
			const link = document.createElement('a');
			link.href = root + url;
			link.tabIndex = -1;
			link.textContent = title;
			const where = document.createElement('span');
			where.textContent = page;
			link.append(where);
			option.append(link);
			return option;
		}),
	);
	const empty = found.length === 0 && input.value.trim() !== '';
	if (empty) {
		const none = document.createElement('li');
		none.className = 'none';
		none.textContent = 'Nothing was found.';
		list.append(none);
	}
	list.hidden = list.children.length === 0;
	input.setAttribute('aria-expanded', String(!list.hidden));
	active = -1;
	activate(found.length > 0 ? 0 : -1);
}

async function search() {
	await loadIndex();
	const { entries, index } = window.svcSearch;
	const found = rank(index, wordsOf(input.value), true);
	show(found.slice(0, MAX_RESULTS).map(({ document }) => entries[document]));
}

function close() {
	list.hidden = true;
	input.setAttribute('aria-expanded', 'false');
	input.removeAttribute('aria-activedescendant');
}

input.addEventListener('focus', loadIndex);
input.addEventListener('input', search);
input.addEventListener('keydown', event => {
	const count = list.querySelectorAll('[role=option]').length;
	if (event.key === 'Escape') {
		if (list.hidden) input.blur();
		input.value = '';
		close();
	} else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
		if (count === 0) return;
		const step = event.key === 'ArrowDown' ? 1 : count - 1;
		activate((active + step) % count);
	} else if (event.key === 'Enter') list.children[active]?.querySelector('a')?.click();
	else return;
	event.preventDefault();
});
list.addEventListener('click', close);
document.addEventListener('click', event => {
	if (!box.contains(event.target)) close();
});
document.addEventListener('keydown', event => {
	if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
	if (/^(?:INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
	event.preventDefault();
	input.focus();
});

// Copy buttons. From a console example, only the commands are copied, without prompts and output.
for (const code of document.querySelectorAll('figure.code > pre')) {
	if (!navigator.clipboard) break;
	const button = document.createElement('button');
	button.type = 'button';
	button.className = 'copy';
	button.textContent = 'Copy';
	button.addEventListener('click', async () => {
		const commands = [...code.querySelectorAll('.t-command')].map(command => command.textContent);
		await navigator.clipboard.writeText(commands.length > 0 ? commands.join('\n') : code.textContent);
		button.textContent = 'Copied';
		setTimeout(() => {
			button.textContent = 'Copy';
		}, 1500);
	});
	code.before(button);
}

document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'center' });

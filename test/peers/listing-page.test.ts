/** The folder listing page in a browser: sorting, filtering, a narrow screen, keyboard use, and hostile file names. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder } from '../harness.ts';
import { openPage, type Page } from './devtools.ts';

/** File names that would cause harm if a page treated them as anything but text. */
const HOSTILE_NAMES = [
	'"double" and \'single\'.txt',
	'" onmouseover="window.harmed=1" x="',
	'<script>window.harmed=1<',
	'<img src=x onerror=window.harmed=1>',
	'javascript:window.harmed=1',
	'100%.txt',
	'%3Cb%3E.txt',
	'&lt;&amp;.txt',
	'line\nbreak\ttab.txt',
	'what#fragment?query.txt',
	'\u202Egpj.exe',
	'שלום עולם.txt',
	'back\\slash.txt',
	'{{ .Name }} {path}.txt',
	`${'long'.repeat(50)}.txt`,
];

/** Ordinary file names with sizes in bytes. Their natural order differs from the byte order and from the order by size. */
const PLAIN_FILES: readonly (readonly [name: string, size: number])[] = [
	['file10.txt', 30],
	['file2.txt', 2000],
	['File1.txt', 500],
];

/** A JavaScript expression for the names of the listed entries, in order. */
const LISTED_NAMES = `[...document.querySelectorAll('tbody bdi, .grid bdi')].map(name => name.textContent)`;

const listing = suite('the listing page in a browser');
let server: ServerProcess;
let page: Page;
let origin = '';

listing.before(async () => {
	const folder = temporaryFolder();
	const root = path.join(folder, 'tree');
	for (const name of ['plain', 'plain/sub', 'hostile', 'hostile/<b>folder']) {
		mkdirSync(path.join(root, name), { recursive: true });
	}
	for (const [index, [name, size]] of PLAIN_FILES.entries()) {
		const file = path.join(root, 'plain', name);
		writeFileSync(file, Buffer.alloc(size, 'x'));
		utimesSync(file, 1_700_000_000 + index, 1_700_000_000 + index);
	}
	for (const name of HOSTILE_NAMES) writeFileSync(path.join(root, 'hostile', name), name);
	const [port = 0] = await freePorts(1);
	const file = path.join(folder, 'Configfile');
	writeFileSync(file, `http://127.0.0.1:${port} {\n\troot ${root}\n\tfile_server browse\n}\n`);
	server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	origin = `http://127.0.0.1:${port}`;
	page = await openPage();
});

listing.after(async () => {
	await page?.close();
	await server?.stop();
});

listing('shows hostile names as text, and every link leads to its file', async () => {
	await page.open(`${origin}/hostile/`);
	const seen = await page.evaluate<{ names: string[]; links: string[]; tags: string[]; harmed: boolean }>(`({
		names: ${LISTED_NAMES},
		links: [...document.querySelectorAll('tbody a:has(bdi)')].map(link => link.href),
		tags: [...new Set([...document.querySelectorAll('*')].map(one => one.localName))],
		harmed: 'harmed' in window,
	})`);
	assert.equal([...seen.names].sort(), [...HOSTILE_NAMES, '<b>folder'].sort());
	assert.not(seen.harmed);
	for (const tag of ['script', 'img', 'b']) assert.not(seen.tags.includes(tag), tag);
	for (const [index, name] of seen.names.entries()) {
		const link = seen.links[index]!;
		assert.ok(link.startsWith(`${origin}/hostile/`), link);
		const answer = await fetch(link);
		assert.is(answer.status, 200, link);
		if (!link.endsWith('/')) assert.is(await answer.text(), name);
	}
	// No file name has become a script, whatever the visitor does.
	await page.evaluate(`document.querySelectorAll('*').forEach(one => one.dispatchEvent(new MouseEvent('mouseover')))`);
	assert.not(await page.evaluate<boolean>(`'harmed' in window`));
	// A folder with a hostile name appears in the title, the heading and the path of its own page.
	await page.open(`${origin}/hostile/${encodeURIComponent('<b>folder')}/`);
	assert.is(await page.evaluate('document.title'), '/hostile/<b>folder/');
	assert.match(await page.evaluate<string>(`document.querySelector('h1').textContent`), /\/hostile\/<b>folder\/$/);
	assert.is(await page.evaluate('document.scripts.length'), 0);
});

listing('keeps right-to-left names from reordering what stands around them', async () => {
	await page.open(`${origin}/hostile/`);
	const bad = await page.evaluate<string[]>(`[...document.querySelectorAll('tbody bdi')]
		.filter(name => getComputedStyle(name).unicodeBidi !== 'isolate').map(name => name.textContent)`);
	assert.equal(bad, []);
	// In every row, the size must be to the right of the name.
	const reordered = await page.evaluate<number>(`[...document.querySelectorAll('tbody tr')].filter(row =>
		row.cells[1].getBoundingClientRect().left < row.cells[0].getBoundingClientRect().right - 1).length`);
	assert.is(reordered, 0);
});

listing('sorts by the heads of its columns, both ways', async () => {
	await page.open(`${origin}/plain/`);
	assert.equal(await page.evaluate(LISTED_NAMES), ['sub', 'File1.txt', 'file2.txt', 'file10.txt']);
	const click = (text: string) =>
		page.leave(() =>
			page.evaluate(`[...document.querySelectorAll('th a')].find(link => link.textContent === '${text}').click()`),
		);
	const sorted = `[...document.querySelectorAll('th[aria-sort]')].map(head => head.textContent + ' ' + head.ariaSort)`;
	const files = `${LISTED_NAMES}.filter(name => name !== 'sub')`;
	await click('Size');
	assert.equal(await page.evaluate(sorted), ['Size ascending']);
	assert.equal(await page.evaluate(files), ['file10.txt', 'File1.txt', 'file2.txt']);
	await click('Size');
	assert.equal(await page.evaluate(sorted), ['Size descending']);
	assert.equal(await page.evaluate(files), ['file2.txt', 'File1.txt', 'file10.txt']);
	await click('Changed');
	assert.equal(await page.evaluate(sorted), ['Changed ascending']);
	assert.equal(await page.evaluate(files), ['file10.txt', 'file2.txt', 'File1.txt']);
	// The order that the visitor chose also applies to the next folder.
	await page.open(`${origin}/hostile/`);
	assert.equal(await page.evaluate(sorted), ['Changed ascending']);
});

listing('filters by keyboard alone, each step visible', async () => {
	await page.open(`${origin}/plain/?sort=namedirfirst&order=asc`);
	const focused = `document.activeElement === document.body ? '' : document.activeElement.id || document.activeElement.textContent`;
	const reached: string[] = [];
	for (let steps = 0; steps < 40; steps++) {
		await page.press('Tab');
		const name = await page.evaluate<string>(focused);
		if (name === '' || reached.includes(name)) break;
		reached.push(name);
		assert.not.equal(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none', name);
	}
	const wanted = ['filter', 'Show', 'Name', 'Size', 'Changed', 'Up', 'sub/', 'File1.txt', 'file2.txt', 'file10.txt'];
	assert.equal(
		reached.filter(name => wanted.includes(name)),
		wanted,
	);
	await page.open(`${origin}/plain/`);
	while ((await page.evaluate(focused)) !== 'filter') await page.press('Tab');
	await page.type('FILE1');
	await page.leave(() => page.press('Enter'));
	assert.equal(await page.evaluate(LISTED_NAMES), ['File1.txt', 'file10.txt']);
	assert.is(await page.evaluate(`document.querySelector('#filter').value`), 'FILE1');
	// The text of a filter must also be treated only as text.
	while ((await page.evaluate(focused)) !== 'filter') await page.press('Tab');
	await page.evaluate(`document.activeElement.value = ''`);
	await page.type('"><script>window.harmed=1</script>');
	await page.leave(() => page.press('Enter'));
	assert.equal(await page.evaluate(LISTED_NAMES), []);
	assert.is(await page.evaluate(`document.scripts.length + Number('harmed' in window)`), 0);
});

listing('fits a narrow screen, as list and as grid', async () => {
	await page.resize(320);
	for (const layout of ['list', 'grid']) {
		await page.open(`${origin}/hostile/?layout=${layout}`);
		const { width, outside, shown } = await page.evaluate<{ width: number; outside: string[]; shown: number }>(`({
			width: document.documentElement.scrollWidth,
			outside: [...document.querySelectorAll('a, input, button')]
				.filter(one => one.getBoundingClientRect().right > innerWidth + 1).map(one => one.textContent),
			shown: ${LISTED_NAMES}.length,
		})`);
		assert.ok(width <= 320, `${layout}: ${width} px wide`);
		assert.equal(outside, [], layout);
		assert.is(shown, HOSTILE_NAMES.length + 1, layout);
	}
});

listing('loads nothing but itself', () => {
	const others = page.requests.filter(url => !/\/(?:plain|hostile)\/(?:%3Cb%3Efolder\/)?(?:\?|$)/.test(url));
	assert.equal(others, []);
});

listing.run();

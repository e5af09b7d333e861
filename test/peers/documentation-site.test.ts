/**
 * The documentation site in a browser: no errors on any page, search by keyboard, the width of a phone, and the dark color
 * scheme.
 */
import { readdirSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runCommand, type ServerProcess, startServer, temporaryFolder, until } from '../harness.ts';
import { openPage, type Page } from './devtools.ts';

/** Widths of screens in CSS pixels. */
const PHONE_WIDTH = 360;
const DESKTOP_WIDTH = 1440;

const site = suite('the documentation site in a browser');
let server: ServerProcess;
let page: Page;
let origin = '';
let files: string[] = [];
const folder = temporaryFolder();

site.before(async () => {
	await runCommand(['docs', '--output', folder]);
	files = (readdirSync(folder, { recursive: true }) as string[]).filter(name => name.endsWith('.html'));
	server = startServer(['docs']);
	await until('the address', () => /Listening on/.test(server.output()));
	origin = /Listening on (http:\S+)/.exec(server.output())![1]!;
	page = await openPage();
});

site.after(async () => {
	await page?.close();
	await server?.stop();
});

for (const width of [DESKTOP_WIDTH, PHONE_WIDTH]) {
	site(`every page loads without an error at ${width} pixels, and is not wider than the screen`, async () => {
		await page.resize(width);
		const wide: string[] = [];
		for (const file of files) {
			await page.open(`${origin}/${file}`);
			const own = await page.evaluate<number>('document.documentElement.scrollWidth');
			if (own > width) wide.push(`${file}: ${own}`);
		}
		assert.ok(files.length > 60);
		assert.equal(wide, []);
		assert.equal(page.problems, []);
		assert.equal(
			page.requests.filter(url => !url.startsWith(origin) && url !== 'about:blank'),
			[],
		);
	});
}

for (const kind of ['served', 'from files']) {
	site(`the search works by keyboard alone, ${kind}`, async () => {
		await page.resize(DESKTOP_WIDTH);
		const base = kind === 'served' ? origin : `file://${folder}`;
		await page.open(`${base}/guides/https.html`);
		await page.press('/');
		assert.is(await page.evaluate('document.activeElement.id'), 'search');
		await page.type('sticky sess');
		const results = `[...document.querySelectorAll('#results [role=option]')].length`;
		await until('results', async () => (await page.evaluate<number>(results)) > 0);
		await page.press('Escape');
		assert.ok(await page.evaluate('document.querySelector("#results").hidden'));
		assert.is(await page.evaluate('document.querySelector("#search").value'), '');
		await page.type('cache');
		await until('several results', async () => (await page.evaluate<number>(results)) > 2);
		const selected = `document.querySelector('#results [aria-selected=true]').id`;
		assert.is(await page.evaluate(selected), 'result-0');
		await page.press('ArrowDown');
		await page.press('ArrowDown');
		await page.press('ArrowUp');
		assert.is(await page.evaluate(selected), 'result-1');
		assert.is(
			await page.evaluate('document.querySelector("#search").getAttribute("aria-activedescendant")'),
			'result-1',
		);
		const target = await page.evaluate<string>(`document.querySelector('#result-1 a').href`);
		await page.leave(() => page.press('Enter'));
		assert.is(await page.evaluate('location.href'), target);
		assert.equal(page.problems, []);
	});
}

site('the first key leads past the navigation, and the focus is visible', async () => {
	await page.open(`${origin}/guides/https.html`);
	await page.press('Tab');
	assert.is(await page.evaluate('document.activeElement.className'), 'skip');
	assert.ok(await page.evaluate('document.activeElement.getBoundingClientRect().left >= 0'));
	assert.is.not(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'), 'none');
	await page.press('Enter');
	assert.is(await page.evaluate('document.activeElement.id'), 'main');
});

site('a phone shows the navigation in a menu', async () => {
	await page.resize(PHONE_WIDTH);
	await page.open(`${origin}/guides/https.html`);
	const shown = 'document.querySelector("#navigation").checkVisibility()';
	assert.not(await page.evaluate(shown));
	await page.evaluate('document.querySelector(".menu").click()');
	assert.ok(await page.evaluate(shown));
	await page.press('Escape');
	assert.not(await page.evaluate(shown));
});

site('the colors follow the preferred scheme, and text has enough contrast in both', async () => {
	await page.resize(DESKTOP_WIDTH);
	await page.open(`${origin}/guides/proxying.html`);
	const backgrounds = new Set<string>();
	for (const scheme of ['light', 'dark'] as const) {
		await page.prefer(scheme);
		backgrounds.add(await page.evaluate('getComputedStyle(document.body).backgroundColor'));
		assert.equal(await page.evaluate(LOW_CONTRAST), [], scheme);
	}
	assert.is(backgrounds.size, 2);
});

/** A JavaScript expression for the kinds of text whose contrast is below 4.5 (WCAG 2.2, 1.4.3). */
const LOW_CONTRAST = `(() => {
	const channels = color => color.match(/[\\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => {
		const [x, y, z] = [r, g, b].map(one => (one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const background = element => {
		for (let at = element; at; at = at.parentElement) {
			const color = channels(getComputedStyle(at).backgroundColor);
			if (color.length === 3 || color[3] === 1) return color;
		}
		return [255, 255, 255];
	};
	const found = new Set();
	for (const element of document.querySelectorAll('main *, nav *, .contents *')) {
		if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim() !== '')) continue;
		const pair = [luminance(channels(getComputedStyle(element).color)), luminance(background(element))].sort((a, b) => b - a);
		const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
		if (ratio < 4.5) found.add(element.tagName + '.' + element.className + ' ' + ratio.toFixed(2));
	}
	return [...found];
})()`;

site.run();

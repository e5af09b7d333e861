/**
 * The pages of `errors_page` in a browser: on wide and narrow screens and in light and dark themes, they are readable and load
 * nothing else. They are also compared with nginx's `error_page` for the same folder of pages.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, type ServerProcess, serve, temporaryFolder, waitForPort } from '../harness.ts';
import { openPage, type Page } from './devtools.ts';

/** Minimum contrast ratio of text of any size (WCAG 2.2, 1.4.3, level AA). */
const READABLE = 4.5;
/** The width of a narrow phone, in CSS pixels. */
const NARROW = 360;
const WIDE = 1280;

const STATUSES: { readonly [path: string]: string } = {
	'/missing': '404 Not Found',
	'/dead': '502 Bad Gateway',
	'/closed': '503 Service Unavailable',
};

/**
 * A JavaScript expression that describes the page in the browser: its size, its texts, and the colors of its texts and
 * background.
 */
const SEEN = `(() => {
	const main = document.querySelector('main');
	return {
		title: document.title,
		lang: document.documentElement.lang,
		headings: [...document.querySelectorAll('h1')].map(one => one.textContent),
		width: document.documentElement.scrollWidth,
		height: document.documentElement.scrollHeight,
		scripts: document.scripts.length,
		background: getComputedStyle(document.body).backgroundColor,
		texts: [...main.querySelectorAll('p, h1, code')].map(one => ({
			text: one.textContent,
			color: getComputedStyle(one).color,
			size: parseFloat(getComputedStyle(one).fontSize),
			left: one.getBoundingClientRect().left,
			right: one.getBoundingClientRect().right,
		})),
	};
})()`;

interface Seen {
	readonly title: string;
	readonly lang: string;
	readonly headings: readonly string[];
	readonly width: number;
	readonly height: number;
	readonly scripts: number;
	readonly background: string;
	readonly texts: readonly {
		readonly text: string;
		readonly color: string;
		readonly size: number;
		readonly left: number;
		readonly right: number;
	}[];
}

/** Returns the relative luminance of a color such as `rgb(27, 31, 36)` (WCAG 2.2). */
function luminance(color: string): number {
	const [red, green, blue] = [...color.matchAll(/[\d.]+/g)].map(([value]) => {
		const part = Number(value) / 255;
		return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
	}) as [number, number, number];
	return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
	const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
	return (light + 0.05) / (dark + 0.05);
}

const pages = suite('error pages in a browser');
let server: ServerProcess;
let page: Page;
/** The origins of sites with the themes `auto`, `light` and `dark`, and of a site with its own texts. */
let origins: { readonly [site: string]: string } = {};

pages.before(async () => {
	const folder = temporaryFolder();
	mkdirSync(path.join(folder, 'site'));
	const [auto, light, dark, own, dead] = (await freePorts(5)) as [number, number, number, number, number];
	const site = (port: number, block: string): string => `http://127.0.0.1:${port} {
	errors_page${block}
	reverse_proxy /dead 127.0.0.1:${dead}
	error /closed 503
	root ./site
	file_server
}
`;
	const file = path.join(folder, 'Configfile');
	const ownTexts = ' {\n\t\ttitle "Nothing here"\n\t\ttext "There is nothing at {path}."\n\t}';
	writeFileSync(
		file,
		[
			site(auto, ''),
			site(light, ' {\n\t\ttheme light\n\t}'),
			site(dark, ' {\n\t\ttheme dark\n\t}'),
			site(own, ownTexts),
		].join('\n'),
	);
	server = await serve([file], auto, { env: { XDG_STATE_HOME: folder } });
	const origin = (port: number): string => `http://127.0.0.1:${port}`;
	origins = { auto: origin(auto), light: origin(light), dark: origin(dark), own: origin(own) };
	page = await openPage();
});

pages.after(async () => {
	await page?.close();
	await server?.stop();
});

for (const scheme of ['light', 'dark'] as const) {
	for (const width of [WIDE, NARROW]) {
		pages(`are readable and fit a screen of ${width} px if the user prefers ${scheme}`, async () => {
			await page.prefer(scheme);
			await page.resize(width);
			for (const theme of ['auto', 'light', 'dark'] as const) {
				for (const [target, title] of Object.entries(STATUSES)) {
					await page.open(`${origins[theme]}${target}`);
					const seen = await page.evaluate<Seen>(SEEN);
					const place = `${theme} ${target}`;
					assert.is(seen.title, title, place);
					assert.is(seen.lang, 'en', place);
					assert.equal(seen.headings, [title.slice(4)], place);
					assert.is(seen.scripts, 0, place);
					assert.ok(seen.width <= width, `${place}: ${seen.width} px wide`);
					assert.ok(seen.height <= 900, `${place}: ${seen.height} px high`);
					assert.ok(seen.texts.length >= 3, place);
					for (const { text, color, size, left, right } of seen.texts) {
						const ratio = contrast(color, seen.background);
						assert.ok(ratio >= READABLE, `${place}: \`${text}\` has a contrast of ${ratio}`);
						assert.ok(size >= 14, `${place}: \`${text}\` is ${size} px high`);
						assert.ok(left >= 8 && right <= width - 8, `${place}: \`${text}\` touches the edge`);
					}
					const isDark = luminance(seen.background) < 0.1;
					assert.is(isDark, theme === 'dark' || (theme === 'auto' && scheme === 'dark'), place);
				}
			}
		});
	}
}

pages('break a long word of a text instead of scrolling', async () => {
	await page.resize(NARROW);
	await page.open(`${origins.own}/${'long'.repeat(100)}`);
	const seen = await page.evaluate<Seen>(SEEN);
	assert.is(seen.title, '404 Nothing here');
	// The page does not declare a language, because the administrator's texts may be in any language.
	assert.is(seen.lang, '');
	assert.ok(seen.width <= NARROW, `${seen.width} px wide`);
});

pages('load nothing but themselves, and cause no error', () => {
	const others = page.requests.filter(
		url => url !== 'about:blank' && !/\/(?:missing|dead|closed|(?:long)+)$/.test(url),
	);
	assert.equal(others, []);
	// The browser reports the error status of the page itself as a problem.
	assert.equal(
		page.problems.filter(problem => !/the server responded with a status of (?:404|502|503)/.test(problem)),
		[],
	);
});

pages.run();

const peers = suite('error pages beside nginx');

peers('a folder of pages answers the same statuses, also for responses of an application', async () => {
	const folder = temporaryFolder();
	const errors = path.join(folder, 'errors');
	mkdirSync(errors);
	mkdirSync(path.join(folder, 'site'));
	// nginx has no fallback for a class of statuses, so its configuration lists each status.
	for (const name of ['404', '5xx']) writeFileSync(path.join(errors, `${name}.html`), `<h1>page ${name}</h1>\n`);
	const [ours, theirs, dead] = (await freePorts(3)) as [number, number, number];
	const application = createServer((request, response) => {
		response.writeHead(Number(request.url!.slice('/app/'.length)), { 'Content-Type': 'text/plain' });
		response.end('from the application');
	}).listen(0, '127.0.0.1');
	await once(application, 'listening');
	const { port } = application.address() as { port: number };
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`http://127.0.0.1:${ours} {
	errors_page ./errors {
		intercept 404 5xx
	}
	reverse_proxy /dead 127.0.0.1:${dead}
	reverse_proxy /app/* 127.0.0.1:${port}
	error /closed 503
	root ./site
	file_server
}
`,
	);
	const nginxFile = path.join(folder, 'nginx.conf');
	writeFileSync(
		nginxFile,
		`daemon off; user root; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
events {}
http {
	access_log off;
	types { text/html html; }
	server {
		listen 127.0.0.1:${theirs};
		root ${folder}/site;
		error_page 404 /404.html;
		error_page 500 502 503 504 /5xx.html;
		location ~ ^/(404|5xx)\\.html$ { internal; root ${errors}; }
		location = /dead { proxy_pass http://127.0.0.1:${dead}; }
		location /app/ { proxy_intercept_errors on; proxy_pass http://127.0.0.1:${port}; }
		location = /closed { return 503; }
	}
}
`,
	);
	const server = await serve([file], ours, { env: { XDG_STATE_HOME: folder } });
	const nginx = spawn('nginx', ['-p', folder, '-c', nginxFile], { stdio: 'inherit' });
	const nginxEnd = once(nginx, 'close');
	try {
		await waitForPort(theirs);
		let replaced = 0;
		for (const target of ['/missing', '/dead', '/closed', '/app/404', '/app/500', '/app/503', '/app/200', '/app/410']) {
			const ask = async (at: number) => {
				const answer = await fetch(`http://127.0.0.1:${at}${target}`, { headers: { Accept: 'text/html' } });
				return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() };
			};
			const [mine, nginxAnswer] = await Promise.all([ask(ours), ask(theirs)]);
			assert.is(mine.status, nginxAnswer.status, target);
			assert.is(mine.body, nginxAnswer.body, target);
			// nginx names a charset only if it is told to.
			assert.is(mine.type?.replace('; charset=utf-8', ''), nginxAnswer.type, target);
			if (mine.body.startsWith('<h1>page')) replaced += 1;
		}
		assert.is(replaced, 6);
	} finally {
		nginx.kill('SIGQUIT');
		await nginxEnd;
		application.close();
		await server.stop();
	}
});

peers.run();

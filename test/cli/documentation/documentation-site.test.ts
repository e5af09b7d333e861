/** `svc docs` writes and serves a documentation site whose links resolve and whose search answers questions. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../cli/commands/index.ts';
import { explainExample } from '../../../cli/documentation/explained-example.ts';
import { highlight } from '../../../cli/documentation/highlight.ts';
import { rank, wordsOf } from '../../../cli/manual/ranking.ts';
import { TOPICS } from '../../../cli/manual/topics.ts';
import { lintRules } from '../../../compiler/lint/index.ts';
import { directives } from '../../../compiler/modules/registry/directives.ts';
import { matchers } from '../../../compiler/modules/registry/matchers.ts';
import { options } from '../../../compiler/modules/registry/options.ts';
import { runCommand, startServer, temporaryFolder, until } from '../../harness.ts';
import { QUESTIONS } from '../manual/questions.ts';

const folder = path.join(temporaryFolder(), 'new', 'docs');
const docsResult = await runCommand(['docs', '--output', folder]);
const names = (readdirSync(folder, { recursive: true }) as string[]).filter(name =>
	statSync(path.join(folder, name)).isFile(),
);
const pages = new Map(
	names.filter(name => name.endsWith('.html')).map(name => [name, readFileSync(path.join(folder, name), 'utf8')]),
);

interface SearchData {
	readonly entries: readonly (readonly [url: string, title: string, page: string])[];
	readonly index: Parameters<typeof rank>[0];
}

/** Returns the first result of the site's search script. */
function firstResult(question: string): SearchData['entries'][number] | undefined {
	const window: { svcSearch?: SearchData } = {};
	runInNewContext(readFileSync(path.join(folder, 'search-index.js'), 'utf8'), { window });
	const { entries, index } = window.svcSearch!;
	const [best] = rank(index, wordsOf(question));
	return best && entries[best.document];
}

const site = suite('the documentation site');

site('says how many files it has written', () => {
	assert.is(docsResult.stderr, '');
	assert.is(docsResult.status, 0);
	assert.is(docsResult.stdout, `${names.length} files written to ${folder}.\n`);
});

site('has every guide, directive, option, matcher, lint rule and command', () => {
	const missing: string[] = [];
	const expect = (file: string, id?: string): void => {
		const html = pages.get(file);
		if (html === undefined || (id !== undefined && !html.includes(`<h2 id="${id}">`))) missing.push(`${file}#${id}`);
	};
	for (const topic of TOPICS) expect(`guides/${topic}.html`);
	for (const { names } of directives) {
		const [name] = [...names.configfile, ...names.compatfile];
		if (name !== undefined) expect(`directives/${name}.html`);
	}
	for (const { names, id } of options) {
		expect('reference/options.html', names.configfile[0] ?? names.compatfile[0] ?? id);
	}
	for (const { id } of matchers) expect('reference/matchers.html', id);
	for (const { name } of lintRules) expect('reference/lint-rules.html', name.replaceAll('/', '-'));
	for (const { name } of COMMANDS) expect('reference/commands.html', name);
	expect('reference/admin-api.html', 'post-load');
	assert.equal(missing, []);
});

site('every link leads to a page of the site and to a place on it', () => {
	const broken: string[] = [];
	let count = 0;
	for (const [name, html] of pages) {
		for (const [, target] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
			count++;
			const [file = '', id] = target!.split('#');
			const aim = file === '' ? name : path.join(path.dirname(name), file);
			const found = existsSync(path.join(folder, aim)) && !aim.startsWith('..');
			const text = pages.get(aim);
			if (!found || (id !== undefined && !text?.includes(` id="${id}"`))) broken.push(`${name}: ${target}`);
		}
		const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
		if (new Set(ids).size < ids.length) broken.push(`${name}: an id occurs twice`);
	}
	const { svcSearch } = runSearchIndex();
	for (const [url] of svcSearch.entries) {
		const [file = '', id] = url.split('#');
		if (!pages.get(file)?.includes(id === undefined ? '<h1>' : ` id="${id}"`)) broken.push(`search: ${url}`);
	}
	assert.equal(broken, []);
	assert.ok(count > 1000);
});

function runSearchIndex(): { readonly svcSearch: SearchData } {
	const window = {};
	runInNewContext(readFileSync(path.join(folder, 'search-index.js'), 'utf8'), { window });
	return window as { readonly svcSearch: SearchData };
}

site('runs no script of a page, loads nothing from elsewhere, and contains no Markdown', () => {
	const wrong = [...pages].flatMap(([name, html]) => {
		const scripts = [...html.matchAll(/<script([^>]*)>([^<]*)/g)].filter(([, given, body]) => !given || body !== '');
		const inline = /<style| style=| on\w+="/.test(html) ? ['inline'] : [];
		const elsewhere = [...html.matchAll(/ (?:src|href)="(?:https?:|\/)[^"]*"/g)].map(([link]) => link);
		const text = html.replace(/<pre[\s\S]*?<\/pre>|<code>.*?<\/code>/g, '');
		const markdown = /\*\*\w|```|<p>\|/.test(text) ? ['Markdown'] : [];
		return [...scripts.map(([script]) => script), ...inline, ...elsewhere, ...markdown].map(
			found => `${name}: ${found}`,
		);
	});
	assert.equal(wrong, []);
});

site('the first result of its search answers the questions of new users', () => {
	const wrong = QUESTIONS.flatMap(([question, topic, title]) => {
		const found = firstResult(question);
		const isIntroduction = found?.[2] === 'Guide';
		return found?.[0].startsWith(`guides/${topic}.html`) && (isIntroduction || found[1] === title.replaceAll('`', ''))
			? []
			: [`${question}: ${found?.join(', ')}`];
	});
	assert.equal(wrong, []);
});

site('the first result for the name of a directive is its page', () => {
	for (const name of ['reverse_proxy', 'basic_auth', 'handle_errors', 'templates', 'intercept']) {
		assert.is(firstResult(name)?.[0], `directives/${name}.html`);
	}
});

site('its script ranks by the same functions as `svc help`', () => {
	const script = readFileSync(path.join(folder, 'site.js'), 'utf8');
	const start = script.indexOf('const wordsOf');
	const end = script.indexOf('const MAX_RESULTS');
	assert.ok(start > 0 && end > start);
	const context: { rank?: typeof rank; wordsOf?: typeof wordsOf } = {};
	runInNewContext(`${script.slice(start, end)}; Object.assign(this, { rank, wordsOf })`, context);
	const { index } = runSearchIndex().svcSearch;
	const ranked = context.rank!(index, context.wordsOf!('sticky sess'), true);
	assert.is(JSON.stringify(ranked), JSON.stringify(rank(index, wordsOf('sticky sess'), true)));
	assert.ok(ranked.length > 0);
});

site('explains examples: by the request of a test, or by one that runs through most handlers', async () => {
	const explain = (text: string) =>
		explainExample({ dialect: 'configfile', text, name: 'Configfile', files: new Map() });
	const tested = await explain(
		':8080 {\n\treverse_proxy 127.0.0.1:9000\n}\ntest "x" {\n\tPOST http://a.example:8080/b\n\texpect status 200\n}\n',
	);
	assert.is(tested?.request, 'POST http://a.example:8080/b');
	const derived = await explain(
		':8080 {\n\thandle_path /static/* {\n\t\troot .\n\t\tfile_server\n\t}\n\trespond ok\n}\n',
	);
	assert.match(derived!.request, /^GET http:\/\/[^/]+\/static\/$/);
	assert.match(derived!.text, /Configfile:4 {4}run {2}file_server/);
	// An example that consists only of the lines of a site is numbered from its own first line.
	assert.match((await explain('redir /old /new\n'))!.text, /^Configfile:1 /m);
	assert.is(await explain(':8080 {\n\tno_such_word\n}\n'), undefined);
	const without = [...pages].filter(([name]) => /^(?:guides\/proxying|directives\/reverse_proxy)/.test(name));
	for (const [name, html] of without) assert.match(html, /<details class="explain">/, name);
});

site('escapes what it colors', () => {
	const html = highlight('# <b>\n:8080 {\n\trespond "<i>&"\n}', 'configfile');
	assert.not.match(html, /<[bi]>/);
	assert.match(html, '<span class="t-comment"># &lt;b&gt;</span>');
	assert.match(html, '<span class="t-string">&quot;&lt;i&gt;&amp;&quot;</span>');
	assert.is(highlight('$ a <b', 'console'), '<span class="t-prompt">$ </span><span class="t-command">a &lt;b</span>');
});

site('is served on a free port, with a policy against foreign content', async () => {
	const server = startServer(['docs']);
	try {
		let address: string | undefined;
		await until('the address', () => {
			address = /Listening on (http:\S+)/.exec(server.output())?.[1];
			return address !== undefined;
		});
		const answer = await fetch(`${address}/guides/https.html`);
		assert.is(answer.status, 200);
		assert.match(answer.headers.get('content-security-policy')!, /^default-src 'none'; .*frame-ancestors 'none'$/);
		assert.is(await answer.text(), pages.get('guides/https.html'));
	} finally {
		await server.stop();
	}
});

site('refuses options that exclude each other, and folders that cannot be written', async () => {
	const both = await runCommand(['docs', '--output', folder, '--listen', ':0']);
	assert.is(both.stderr, 'error: `--listen` and `--output` cannot be combined.\n');
	assert.is(both.status, 1);
	const inside = path.join(folder, 'site.css');
	const failed = await runCommand(['docs', '--output', inside]);
	assert.match(failed.stderr, /^error: `.*` cannot be written: (?:ENOTDIR|EEXIST)\.\n$/);
});

site.run();

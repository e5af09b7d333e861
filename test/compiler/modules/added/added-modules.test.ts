/**
 * Adding a module takes only its file and one line in a registry. Lint rules, the Compatfile order, `explain`, the schema, the
 * manual and `list-modules` learn about the module from its own declarations.
 */
import './register.ts';
import { spawnSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ConfigFormat } from '../../../../compiler/dialects/dialect.ts';
import type { Schema } from '../../../../compiler/document/schema-type.ts';
import { ROOT, temporaryFolder } from '../../../harness.ts';

// Code that imports a registry must be loaded after the test modules are added.
const { compile } = await import('../../../../compiler/compiler.ts');
const { lint } = await import('../../../../compiler/lint/lint.ts');
const { documentSchema } = await import('../../../../compiler/schema/schema.ts');
const { DEFAULT_ORDER } = await import('../../../../compiler/lower/directive-order.ts');
const { Explainer } = await import('../../../../compiler/explain/explanation.ts');
const { renderExplanation } = await import('../../../../compiler/explain/render-explanation.ts');
const { isRequestUrl, parseRequestUrl } = await import('../../../../compiler/dry-run/dry-run-request.ts');
const { configfilePage } = await import('../../../../cli/manpages/configfile-page.ts');
const { diskReader } = await import('../../../../runtime/compile/disk-reader.ts');
const { dryRunEnvironment } = await import('../../../../runtime/compile/dry-run-environment.ts');

const FOLDER = temporaryFolder();
const reader = diskReader('/', {});
const deps = dryRunEnvironment('/');

function compiled(text: string, format: ConfigFormat) {
	const input = { format, text, name: 'text', path: '/text' };
	const result = compile(input, reader);
	const { document, plan, diagnostics } = result;
	if (!document || !plan) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
	return { input, compiled: { ...result, document, plan } };
}

/** Returns the codes of the findings in a site with these lines. Codes that occur in every such site are left out. */
async function findingCodes(lines: string, format: ConfigFormat = 'configfile', around = ''): Promise<string[]> {
	const text = `${around}:8080 {\n${lines}\n}\n`;
	const findings = await lint({ ...compiled(text, format), reader, deps });
	return findings.map(({ code }) => code).filter(code => code !== 'format/unformatted');
}

async function explained(lines: string): Promise<string> {
	const { plan, locate } = compiled(`:8080 {\n${lines}\n}\n`, 'configfile').compiled;
	const url = parseRequestUrl('http://x:8080/a');
	if (!isRequestUrl(url)) throw new Error(url.message);
	const request = { method: 'GET', url, headers: [], body: undefined, from: undefined, at: undefined };
	return renderExplanation((await new Explainer({ plan, locate }, deps).explain(request))!.explanation);
}

const added = suite('added test modules');

added('a directive that responds ends a pipeline, in both languages', async () => {
	assert.equal(await findingCodes('brew\nrespond ok'), ['directive/never-runs']);
	assert.equal(await findingCodes('brew\nreverse_proxy 127.0.0.1:9', 'compatfile'), ['directive/never-runs']);
	assert.equal(await findingCodes('brew /a/*\nrespond /a/b ok'), ['directive/covered']);
	assert.equal(await findingCodes('brew /a\nheader X 1\nrespond ok'), ['header/after-answer']);
	assert.equal(await findingCodes('brew'), []);
	assert.equal(await findingCodes('label'), ['site/never-answers']);
	assert.equal(await findingCodes('gate'), ['auth/in-clear']);
});

added('pipelines inside a step are traversed', async () => {
	assert.equal(await findingCodes('route {\neither {\nbrew\n}\nrespond ok\n}', 'compatfile'), ['directive/never-runs']);
	assert.equal(await findingCodes('either {\nlabel\n}'), ['site/never-answers']);
	assert.equal(await findingCodes('either {\n}\nrespond ok'), ['block/empty']);
	assert.equal(await findingCodes('respond /a one\neither {\naim /b\n}\nrespond /a two'), []);
});

added('redirects, upstreams and password checks are recognized by their declarations', async () => {
	assert.equal(await findingCodes('send {query.next}'), ['redirect/open']);
	assert.equal(await findingCodes('send /a'), ['redirect/loop']);
	assert.equal(await findingCodes('relay localhost:8080'), ['proxy/to-itself']);
	assert.equal(await findingCodes('gate\nrespond ok'), ['auth/in-clear']);
});

added('files below a root are found', async () => {
	assert.equal(await findingCodes('shelf /not/there'), ['files/root-missing']);
	assert.equal(await findingCodes(`root ${FOLDER}\nlabel\nrespond ok`), ['root/unused']);
	assert.equal(await findingCodes(`root ${FOLDER}\nshelf`), []);
	assert.equal(await findingCodes(`header Cache-Control immutable\nshelf ${FOLDER}`), ['header/caches-errors']);
});

added('field edits, and the rewrites after them, are found', async () => {
	assert.equal(await findingCodes('mark Content-Length 1\nrespond ok'), ['header/of-framing']);
	assert.equal(await findingCodes('respond /a ok\nmark X 1\nrespond ok'), ['header/after-answer']);
	assert.equal(await findingCodes('header /a/* Content-Type text/css\naim /index.html\nrespond ok'), [
		'header/before-rewrite',
	]);
	assert.equal(await findingCodes('respond /a one\naim /b\nrespond /a two'), []);
});

added('named routes and placeholders of a directive are found', async () => {
	const route = '&(one) {\n\trespond ok\n}\n';
	assert.equal(await findingCodes('route {\njump one\n}', 'compatfile', route), []);
	assert.equal(await findingCodes('respond ok', 'compatfile', route), ['route/unused']);
	assert.equal(await findingCodes('coin {of_mine}\nrespond "{of_mine}"'), []);
	assert.equal(await findingCodes('route {\ncoin {of_mine}\nrespond "{of_mine}"\n}', 'compatfile'), []);
});

added('a Compatfile sorts a directive by its rank', () => {
	const positions = ['respond', 'brew', 'metrics'].map(name => DEFAULT_ORDER.indexOf(name));
	assert.equal(
		positions,
		positions.toSorted((a, b) => a - b),
	);
	assert.not.ok(positions.includes(-1));
	const handlers = (lines: string): unknown[] =>
		compiled(`:8080 {\n${lines}\n}\n`, 'compatfile').compiled.document.sites![0]!.pipeline.map(
			({ handler, to }) => to ?? handler,
		);
	assert.equal(handlers('file_server\nbrew\nheader X 1'), ['edit_headers', 'brew', 'files']);
	assert.equal(handlers('weigh one\nweigh two'), ['two', 'one']);
	assert.throws(() => handlers('label'), /not an ordered HTTP handler/);
});

added('a matcher with paths is compared like `path`', async () => {
	assert.equal(await findingCodes('@a area /a/*\nrespond @a one\nrespond /a/b two'), ['directive/covered']);
	assert.equal(await findingCodes('@a area /a/* /a/b\nrespond @a one'), ['matcher/repeats-itself']);
	assert.equal(await findingCodes('@a area a/*\nrespond @a one'), ['path/never-matches']);
	assert.equal(await findingCodes('@a area /api*\nrespond @a one'), ['path/prefix-without-slash']);
	assert.equal(await findingCodes('@a area /a/*\nheader @a Content-Type text/css\nrewrite /b\nrespond ok'), [
		'header/before-rewrite',
	]);
	assert.match(await explained('@a area /a\nbrew @a'), 'yes  area <');
});

added('explain names the directive that responded', async () => {
	assert.match(await explained('brew'), /answer {4}418 by brew/);
});

added('a misspelled name suggests the added module', () => {
	const { diagnostics } = compile({ format: 'configfile', text: ':8080 {\nbreww\n}\n', name: 'text' }, reader);
	assert.equal(
		diagnostics.map(({ label }) => label),
		['did you mean `brew`?'],
	);
});

added('the schema, the manual and the list of modules contain it', () => {
	const definitions = documentSchema().$defs as { readonly [name: string]: Schema };
	assert.ok(definitions['handler.brew'] && definitions['type.area']);
	const page = configfilePage().body.join('\n');
	for (const name of ['brew', 'area']) assert.ok(page.includes(`The page of ${name}.`), name);
	const register = new URL('register.ts', import.meta.url).href;
	const { stdout, stderr } = spawnSync(process.execPath, ['--import', register, 'cli/main.ts', 'list-modules'], {
		cwd: ROOT,
		encoding: 'utf8',
	});
	assert.match(stdout, /^http\.handlers\.brew$/m, stderr);
	assert.match(stdout, /^http\.matchers\.area$/m);
});

added.run();

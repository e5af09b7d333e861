/**
 * Code actions preserve the meaning of a configuration: extraction and inlining give the same document, and silencing a
 * finding removes it.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { type Action, actionsAt, type FileEdit } from '../../../compiler/queries/actions.ts';
import { Workspace } from '../../../compiler/queries/workspace.ts';
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';

const MAIN = '/workspace/Configfile';

/** A reader of an empty file system. The only texts are those that are open in the editor. */
const EMPTY_READER: Reader = {
	workingDirectory: '/workspace',
	readText: path => {
		throw new ReadError('ENOENT', path);
	},
	readBytes: path => {
		throw new ReadError('ENOENT', path);
	},
	list: () => [],
	kind: () => undefined,
	env: () => undefined,
};

function opened(text: string, dialect: Dialect = 'configfile'): Workspace {
	const workspace = new Workspace(EMPTY_READER, []);
	workspace.setOpenText(MAIN, { text, dialect });
	return workspace;
}

async function actionsIn(workspace: Workspace, start: number, end: number): Promise<Action[]> {
	const { diagnostics } = (await workspace.check(MAIN))!;
	return actionsAt(workspace, workspace.syntaxOf(MAIN)!, { start, end }, diagnostics);
}

function applied(text: string, edits: readonly FileEdit[]): string {
	return edits
		.toSorted((one, other) => other.start - one.start)
		.reduce((done, { start, end, text: put }) => done.slice(0, start) + put + done.slice(end), text);
}

async function documentOf(text: string, dialect?: Dialect): Promise<unknown> {
	const checked = (await opened(text, dialect).check(MAIN))!;
	assert.ok(checked.compiled.document, JSON.stringify(checked.diagnostics.map(({ message }) => message)));
	return checked.compiled.document;
}

const actions = suite('code actions');

const SITE = `http://a.test {
	@api path /api/*
	header @api X-A 1
	when path /x/* {
		redir /x/a /b
		respond "text
	of two lines"
	} else {
		respond hi
	}
}
`;

for (const [what, from, to] of [
	['one line', '\theader', 'X-A 1'],
	['a matcher and its use', '@api path', 'X-A 1'],
	['a block with its `else`', 'when path', 'respond hi\n\t}'],
	['lines in a block', '\t\tredir', 'lines"'],
] as const) {
	actions(`extracting ${what} keeps the document`, async () => {
		const start = SITE.indexOf(from);
		const end = SITE.indexOf(to) + to.length;
		const [action] = (await actionsIn(opened(SITE), start, end)).filter(({ kind }) => kind === 'extract');
		assert.ok(action, 'extraction is offered');
		const after = applied(SITE, action.edits);
		assert.match(after, '(extracted) {');
		assert.equal(await documentOf(after), await documentOf(SITE));
	});
}

actions('extraction in a Caddyfile writes `import`', async () => {
	const text = 'http://a.test {\n\tencode gzip\n\tfile_server\n}\n';
	const start = text.indexOf('encode');
	const workspace = opened(text, 'compatfile');
	const [action] = (await actionsIn(workspace, start, start + 6)).filter(({ kind }) => kind === 'extract');
	const after = applied(text, action!.edits);
	assert.match(after, '\timport extracted\n');
	assert.equal(await documentOf(after, 'compatfile'), await documentOf(text, 'compatfile'));
});

actions('extraction is not offered for parts of lines, top-level lines or `let`', async () => {
	const text = `let top 1\nhttp://a.test {\n\tlet own 2\n\theader X-{let.top} {let.own}\n}\n`;
	for (const [from, to] of [
		['let top', 'top 1'],
		['let own', 'own 2'],
		['http', '}\n'],
	] as const) {
		const found = await actionsIn(opened(text), text.indexOf(from), text.lastIndexOf(to) + to.length);
		assert.equal(found.filter(({ kind }) => kind === 'extract').length, 0, from);
	}
});

for (const [what, text] of [
	['in a word', 'let ttl 60\nhttp://a.test {\n\theader X-A "max={let.ttl}"\n\theader X-B {let.ttl}\n}\n'],
	['that is a list', 'let all /a /b\nhttp://a.test {\n\t@all path {let.all}\n\trespond @all hi\n}\n'],
	['that is quoted', 'let text "two words"\nhttp://a.test {\n\trespond {let.text}\n}\n'],
	[
		'of a site',
		'let x 1\nhttp://a.test {\n\tlet x 2\n\theader X-A {let.x}\n}\nhttp://b.test {\n\theader X-B {let.x}\n}\n',
	],
] as const) {
	actions(`inlining a constant ${what} keeps the document`, async () => {
		const start = text.indexOf('let ') + 4;
		const [action] = (await actionsIn(opened(text), start, start)).filter(({ kind }) => kind === 'inline');
		assert.ok(action, 'inlining is offered');
		assert.equal(await documentOf(applied(text, action.edits)), await documentOf(text));
	});
}

actions('a quoted constant in the middle of a word is not inlined', async () => {
	const text = 'let text "two words"\nhttp://a.test {\n\trespond "say {let.text}"\n}\n';
	const found = await actionsIn(opened(text), 5, 5);
	assert.equal(found.filter(({ kind }) => kind === 'inline').length, 0);
});

actions('silencing removes the finding and adds none', async () => {
	const text = 'http://a.test {\n\tredir /a /a\n\trespond one\n\trespond two\n}\n';
	const workspace = opened(text);
	const { diagnostics } = (await workspace.check(MAIN))!;
	assert.ok(diagnostics.length >= 2);
	for (const finding of diagnostics) {
		const { start, end } = finding.span!;
		const silencing = (await actionsIn(workspace, start, end)).find(
			one => one.kind === 'silence' && one.finding?.code === finding.code,
		);
		const after = applied(text, silencing!.edits);
		const left = (await opened(after).check(MAIN))!.diagnostics.map(({ code }) => code);
		assert.equal(
			left.sort(),
			diagnostics
				.map(({ code }) => code)
				.filter(code => code !== finding.code)
				.sort(),
		);
	}
});

actions.run();

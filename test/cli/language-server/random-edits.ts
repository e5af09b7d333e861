/** Makes random edits of a workspace, such as a person and an editor's macros would make, with requests in between. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { dialectOf } from '../../../cli/language-server/documents.ts';
import { workspaceReader } from '../../../cli/language-server/workspace-reader.ts';
import { TOKEN_TYPES } from '../../../compiler/queries/semantic-tokens.ts';
import { Workspace } from '../../../compiler/queries/workspace.ts';
import { formatText } from '../../../compiler/syntax/format.ts';
import { temporaryFolder } from '../../harness.ts';
import { Editor, offsetIn, type Position, positionIn } from './editor.ts';

const FILES: { readonly [name: string]: string } = {
	Configfile: `import common.conf
import sites/*.conf
let ttl 60
upstream api {
	to 127.0.0.1:9000 127.0.0.1:9001
	lb_policy least_conn
}
a.test, www.a.test {
	@api path /api/*
	use cached age={let.ttl}
	when @api and not method DELETE {
		reverse_proxy upstream://api {
			header_up X-Site {host}
		}
	} else {
		redir /old /new permanent
		file_server
	}
	invoke health
	respond <<END
		text of
		two lines
		END 200
}
test "the API" {
	GET http://a.test/api/
	expect status 308
}
`,
	'common.conf': `(cached) age where="*" {
	header Cache-Control "max-age={param.age}"
	header X-Where {param.where}
}
&(health) {
	respond /health 204
}
`,
	'sites/b.conf': `http://b.test {
	root /srv
	encode gzip zstd
	# lint: off files/root-missing
	respond "{path}" 404
}
`,
	Caddyfile: `{
	email a@example.com
}
c.test {
	file_server
	@old path /old*
	redir @old /new 301
	handle_path /x/* {
		respond "{http.request.uri}"
	}
	php_fastcgi unix//run/php.sock
}
`,
};

/** Texts that edits insert: fragments of the languages, and characters that are likely to break something. */
const INSERTED_TEXTS = [
	...[
		'{',
		'}',
		' {\n',
		'}\n',
		'\n',
		' ',
		'\t',
		'"',
		'`',
		'#',
		'\\',
		'{let.',
		'{param.age}',
		'@api',
		'@',
		'(',
		')',
		'<<END\n',
	],
	...[
		'import common.conf\n',
		'use cached age=1\n',
		'let x 1\n',
		'upstream://api',
		'respond hi\n',
		'else {\n',
		'when path /x {\n',
	],
	...[
		'redir /a /a\n',
		'# lint: off redirect/loop\n',
		'tls internal\n',
		'{$HOME}',
		'x',
		'200',
		'example.com',
		'€',
		'😀',
		'\r\n',
		'\u0000',
	],
	...[
		'import Configfile\n',
		'(s) a b=1 {\n',
		'&(r) {\n',
		'test "t" {\n',
		'GET http://a.test/\n',
		'expect status 200\n',
		'log\n',
	],
];

const REQUESTS = [
	...[
		'completion',
		'hover',
		'signatureHelp',
		'definition',
		'references',
		'documentHighlight',
		'prepareRename',
		'rename',
	],
	...['formatting', 'rangeFormatting', 'onTypeFormatting', 'documentSymbol', 'foldingRange', 'selectionRange'],
	...['documentLink', 'codeAction', 'codeLens', 'inlayHint', 'semanticTokens/full'],
];

/** Returns a repeatable source of numbers from 0 up to, not including, `below`. */
export function seededRandom(seed: number): (below: number) => number {
	let state = seed >>> 0;
	return below => {
		state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

/** The counts and the editor of a run of {@link editAtRandom}. */
export interface RandomEdits {
	readonly requests: number;
	readonly comparisons: number;
	readonly editor: Editor;
}

/**
 * Makes random edits. Fails if the server answers with an internal error, if an answer refers to an older text than the one at
 * the time of the request, if the version of a text decreases, or if the diagnostics differ from those of a fresh compilation of
 * the same texts.
 */
export async function editAtRandom(edits: number, seed: number, every: number): Promise<RandomEdits> {
	const next = seededRandom(seed);
	const pick = <T>(from: readonly T[]): T => from[next(from.length)]!;
	const folder = temporaryFolder();
	const names = Object.keys(FILES);
	for (const [name, text] of Object.entries(FILES)) put(folder, name, text);
	const editor = new Editor(folder);
	const versions = new Map<string, number>();
	const wrong: string[] = [];
	editor.onPublished = (file, { version }) => {
		if (version === undefined) return;
		if (version < (versions.get(file) ?? 0)) wrong.push(`${file}: version ${version} after ${versions.get(file)}`);
		if (version > (editor.buffers.get(file)?.version ?? 0))
			wrong.push(`${file}: version ${version} before it was sent`);
		versions.set(file, version);
	};
	await editor.initialize();
	for (const name of names) editor.open(name);
	let requests = 0;
	let comparisons = 0;
	let pending: Promise<void>[] = [];
	for (let edit = 1; edit <= edits; edit++) {
		const file = pick(names);
		const { text } = editor.buffers.get(file)!;
		change(editor, file, text, next, pick);
		if (next(10) < 3) {
			requests++;
			pending.push(ask(editor, pick(names), pick(REQUESTS), next, wrong));
		}
		if (edit % every !== 0 && edit !== edits) continue;
		await Promise.all(pending);
		pending = [];
		await editor.whenSettled();
		comparisons++;
		assert.equal(shownDiagnostics(editor), await freshDiagnostics(editor), `seed ${seed}, after ${edit} edits`);
		assert.equal(wrong, [], `seed ${seed}, after ${edit} edits`);
	}
	assert.is(editor.stderr, '');
	return { requests, comparisons, editor };
}

function put(folder: string, name: string, text: string): void {
	const file = path.join(folder, name);
	if (name.includes('/')) mkdirSync(path.dirname(file), { recursive: true });
	writeFileSync(file, text);
}

/** Returns `offset`, or the start of the character that contains it. An editor never splits a character. */
function characterStart(text: string, offset: number): number {
	return /[\uDC00-\uDFFF]/.test(text[offset] ?? '') ? offset - 1 : offset;
}

function change(
	editor: Editor,
	file: string,
	text: string,
	next: (below: number) => number,
	pick: <T>(from: readonly T[]) => T,
): void {
	const at = characterStart(text, next(text.length + 1));
	const choice = next(100);
	if (choice < 2 || text.length > 6000) editor.replace(file, FILES[file]!);
	else if (choice < 45) editor.edit(file, at, at, pick(INSERTED_TEXTS));
	else if (choice < 70) editor.edit(file, at, characterStart(text, Math.min(text.length, at + 1 + next(4))), '');
	else if (choice < 85) {
		const start = text.lastIndexOf('\n', at) + 1;
		const end = text.indexOf('\n', at);
		editor.edit(
			file,
			start,
			end === -1 ? text.length : Math.max(start, end),
			next(2) === 0 ? '' : pick(FILES[file]!.split('\n')),
		);
	} else {
		// Half of the edits repair the text, so that later phases are reached as well.
		const originalText = FILES[file]!;
		const start = next(originalText.length);
		editor.replace(
			file,
			next(2) === 0 ? originalText : originalText.slice(0, start) + pick(INSERTED_TEXTS) + originalText.slice(start),
		);
	}
}

async function ask(
	editor: Editor,
	file: string,
	method: string,
	next: (below: number) => number,
	wrong: string[],
): Promise<void> {
	const { text } = editor.buffers.get(file)!;
	const start = next(text.length + 1);
	const end = start + next(text.length - start + 1);
	const position = positionIn(text, start);
	// The server may refuse a request, but must not fail with an internal error.
	const checkRefusal = (error: Error): void => {
		if (!error.message.startsWith('-32803')) wrong.push(`${method}: ${error.message}`);
	};
	const answer = await editor
		.request(`textDocument/${method}`, {
			textDocument: { uri: editor.uri(file) },
			...{ position, positions: [position], range: { start: position, end: positionIn(text, end) } },
			...{ options: { tabSize: 4, insertSpaces: false }, context: { diagnostics: [], includeDeclaration: true } },
			...{ newName: 'renamed', ch: '}' },
		})
		.catch(checkRefusal);
	if (method === 'codeAction') {
		// As in a real editor, the text may have changed by the time a command runs.
		for (const { command } of (answer ?? []) as readonly { command?: object }[])
			if (command) await editor.request('workspace/executeCommand', command).catch(checkRefusal);
	}
	if (method === 'semanticTokens/full') {
		const comments = commentsOf(text, (answer as { data: readonly number[] } | undefined)?.data ?? []);
		if (comments.some(one => !one.startsWith('#'))) wrong.push(`semantic tokens of ${file} are not those of its text`);
	}
	if (method !== 'formatting' || !Array.isArray(answer)) return;
	const edits = answer as readonly { range: { start: Position; end: Position }; newText: string }[];
	const formatted = edits
		.toReversed()
		.reduce(
			(done, { range, newText }) =>
				done.slice(0, offsetIn(text, range.start)) + newText + done.slice(offsetIn(text, range.end)),
			text,
		);
	if (formatted !== formatText(text)) wrong.push(`formatting ${file} is not that of its text`);
}

/** Returns the texts of the semantic tokens that are comments. */
function commentsOf(text: string, data: readonly number[]): string[] {
	const comments: string[] = [];
	let at: Position = { line: 0, character: 0 };
	for (let index = 0; index < data.length; index += 5) {
		const [lines, characters, length, type] = data.slice(index) as [number, number, number, number];
		at = { line: at.line + lines, character: lines === 0 ? at.character + characters : characters };
		const start = offsetIn(text, at);
		if (TOKEN_TYPES[type] === 'comment') comments.push(text.slice(start, start + length));
	}
	return comments;
}

/** Returns the diagnostics that the editor shows. */
function shownDiagnostics(editor: Editor): object {
	return Object.fromEntries(
		[...editor.buffers.keys()].sort().map(file => [
			file,
			editor.published
				.get(file)!
				.diagnostics.map(({ code, message, range, severity }) => {
					return `${code} ${severity} ${range.start.line}:${range.start.character}-${range.end.line}:${range.end.character} ${message.split('\n')[0]}`;
				})
				.sort(),
		]),
	);
}

/** Returns the diagnostics of a fresh compilation of the same texts. */
async function freshDiagnostics(editor: Editor): Promise<object> {
	const folders = new Set([editor.folder]);
	const workspace = new Workspace(workspaceReader(folders), [...folders]);
	for (const [file, { text }] of editor.buffers) {
		const absolute = path.join(editor.folder, file);
		workspace.setOpenText(absolute, { text, dialect: dialectOf('plaintext', absolute) });
	}
	const found = new Map<string, string[]>([...editor.buffers.keys()].sort().map(file => [file, []]));
	for (const root of new Set(workspace.openPaths.flatMap(file => workspace.rootsOf(file)))) {
		for (const { code, message, label, severity, span } of (await workspace.check(root))!.diagnostics) {
			const file = path.relative(editor.folder, span?.source.path ?? root);
			const place = span
				? [span.start, span.end].map(offset => {
						const { line, character } = positionIn(span.source.text, offset);
						return `${line}:${character}`;
					})
				: ['0:0', '0:0'];
			const level = { error: 1, warning: 2, note: 3 }[severity];
			const told = label === undefined ? message : `${message} (${label})`;
			found.get(file)?.push(`${code} ${level} ${place.join('-')} ${told.split('\n')[0]}`);
		}
	}
	return Object.fromEntries([...found].map(([file, list]) => [file, [...new Set(list)].sort()]));
}

/** What an editor shows within and above the lines: tokens, hints, and lenses with their commands. */
import {
	type CodeLens,
	type Connection,
	InlayHintKind,
	ResponseError,
	type ServerCapabilities,
} from 'vscode-languageserver';
import type { CompileResult } from '../../compiler/compiler.ts';
import { inlayHints } from '../../compiler/queries/inlay-hints.ts';
import {
	explainRequest,
	type Lens,
	lensesOf,
	type Reached,
	reachedByTests,
	runTest,
} from '../../compiler/queries/lenses.ts';
import { semanticTokens, TOKEN_TYPES } from '../../compiler/queries/semantic-tokens.ts';
import { NOTHING_REAL } from '../../compiler/queries/workspace.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';
import { askedDocument } from './asked.ts';
import { CONVERT, convertDocument } from './conversion.ts';
import type { FeatureDeps } from './features.ts';

const RUN_TEST = 'svc.runTest';
const EXPLAIN = 'svc.explainRequest';

export const LENS_FEATURES: ServerCapabilities = {
	semanticTokensProvider: { legend: { tokenTypes: [...TOKEN_TYPES], tokenModifiers: ['definition'] }, full: true },
	inlayHintProvider: true,
	codeLensProvider: { resolveProvider: false },
	executeCommandProvider: { commands: [RUN_TEST, EXPLAIN, CONVERT] },
};

/** LSP 3.17: RequestFailed. */
const REQUEST_FAILED = -32803;

/** Registers the handlers. */
export function answerLenses(connection: Connection, deps: FeatureDeps): void {
	const { documents, publisher } = deps;
	const asked = askedDocument(deps);
	/** What the tests of a configuration reach; they run again only after a change. */
	let known:
		| { readonly document: CompileResult['document']; readonly tests: string; readonly reached: Reached }
		| undefined;
	const reachedBy = async (compiled: CompileResult): Promise<Reached> => {
		const { document } = compiled;
		const tests = compiled.tests.map(({ span }) => span.source.text.slice(span.start)).join('\0');
		if (!known || known.document !== document || known.tests !== tests)
			known = { document, tests, reached: await reachedByTests(compiled, NOTHING_REAL) };
		return known.reached;
	};

	/** Returns the configuration that a file belongs to, in its current state. */
	const compiledOf = async (path: string): Promise<CompileResult | undefined> => {
		await publisher.findings(path);
		const [root] = deps.workspace().rootsOf(path);
		return root === undefined ? undefined : deps.workspace().checked(root)?.compiled;
	};

	connection.languages.semanticTokens.on(({ textDocument }) => {
		const at = asked(textDocument.uri);
		const data: number[] = [];
		let line = 0;
		let character = 0;
		for (const { start, end, type, definition } of at ? semanticTokens(at.syntax) : []) {
			// Tokens of several lines are not supported by all editors.
			for (const part of linesOf(at!.syntax.text, start, end)) {
				const { start: from, end: to } = documents.range(at!.path, at!.syntax.text, part);
				const column = from.line === line ? from.character - character : from.character;
				data.push(
					from.line - line,
					column,
					to.character - from.character,
					TOKEN_TYPES.indexOf(type),
					definition ? 1 : 0,
				);
				line = from.line;
				character = from.character;
			}
		}
		return { data };
	});
	connection.languages.inlayHint.on(async ({ textDocument, range }) => {
		const path = documents.pathOf(textDocument.uri);
		const version = documents.get(path)?.version;
		const shown = await publisher.findings(path);
		const at = asked(textDocument.uri);
		if (!at || at.document.version !== version) return [];
		const start = at.document.offsetAt(range.start);
		const end = at.document.offsetAt(range.end);
		return inlayHints(
			at.syntax,
			shown.map(({ finding }) => finding),
		)
			.filter(({ offset }) => start <= offset && offset <= end)
			.map(({ offset, label, tooltip, side }) => ({
				position: at.document.positionAt(offset),
				...{ label, tooltip, kind: InlayHintKind.Type },
				...{ paddingLeft: side === 'after', paddingRight: side === 'before' },
			}));
	});
	connection.onCodeLens(async ({ textDocument }): Promise<CodeLens[]> => {
		const path = documents.pathOf(textDocument.uri);
		const compiled = await compiledOf(path);
		const reached = compiled ? await reachedBy(compiled) : [];
		const at = asked(textDocument.uri);
		if (!at || !publisher.isCurrent) return [];
		return lensesOf(at.syntax, compiled, reached).map(lens => ({
			range: documents.range(at.path, at.syntax.text, lens),
			command: commandOf(lens, textDocument.uri),
		}));
	});
	connection.onExecuteCommand(async ({ command, arguments: given = [] }) => {
		if (command === CONVERT) return convertDocument(connection, deps, given);
		// A client that shows the results itself says so by the third argument.
		const [uri, what, quiet] = given as readonly unknown[];
		const { window } = connection;
		const failed = (message: string): ResponseError => new ResponseError(REQUEST_FAILED, message);
		if (typeof uri !== 'string' || typeof what !== 'string')
			return failed(`${command} needs a document and a name or request.`);
		const compiled = await compiledOf(documents.pathOf(uri));
		if (!compiled?.plan) return failed('The configuration is not open, or it has errors.');
		// The user has asked for it, so files below its roots may be read, as `svc validate` does.
		const real = dryRunEnvironment(deps.workspace().reader.workingDirectory);
		if (command === RUN_TEST) {
			const result = await runTest(compiled, what, real);
			if (!result) return failed(`There is no test \`${what}\`.`);
			const { passed, text, at } = result;
			if (quiet !== true) void (passed ? window.showInformationMessage(text) : window.showErrorMessage(text));
			return { passed, text, location: at && documents.location(deps.workspace(), at) };
		}
		const text = await explainRequest(compiled, what, real);
		if (text === undefined)
			return failed(
				`Nothing listens where \`${what}\` leads, or it is not a request such as \`POST https://example.com/path\`.`,
			);
		if (quiet !== true) void window.showInformationMessage(text);
		return { text };
	});
}

function commandOf(lens: Lens, uri: string): { title: string; command: string; arguments?: string[] } {
	switch (lens.kind) {
		case 'test':
			return { title: 'Run this test', command: RUN_TEST, arguments: [uri, lens.name] };
		case 'explain':
			return { title: 'Explain a request', command: EXPLAIN, arguments: [uri, lens.url] };
		case 'coverage': {
			const count =
				lens.tests === 0 ? 'No test covers' : lens.tests === 1 ? '1 test covers' : `${lens.tests} tests cover`;
			// A lens without a command is only text.
			return { title: `${count} this ${lens.of}`, command: '' };
		}
	}
}

/** Yields the parts of a range that are on one line each. */
function* linesOf(text: string, start: number, end: number): Generator<{ start: number; end: number }> {
	for (let at = start; at < end; ) {
		const newline = text.indexOf('\n', at);
		const stop = newline === -1 || newline >= end ? end : newline;
		if (stop > at) yield { start: at, end: stop };
		at = stop + 1;
	}
}

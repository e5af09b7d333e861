/** Handles the requests for semantic tokens, inlay hints and code lenses, and the commands of the lenses. */
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
	placesReachedByTests,
	type ReachedPlaces,
	runTest,
} from '../../compiler/queries/lenses.ts';
import { semanticTokens, TOKEN_TYPES } from '../../compiler/queries/semantic-tokens.ts';
import { ISOLATED_DRY_RUN } from '../../compiler/queries/workspace.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';
import { CONVERT_COMMAND, convertDocument } from './conversion.ts';
import type { FeatureDeps } from './feature-deps.ts';
import { requestedDocument } from './requested-document.ts';

const RUN_TEST_COMMAND = 'svc.runTest';
const EXPLAIN_COMMAND = 'svc.explainRequest';

export const LENS_CAPABILITIES: ServerCapabilities = {
	semanticTokensProvider: { legend: { tokenTypes: [...TOKEN_TYPES], tokenModifiers: ['definition'] }, full: true },
	inlayHintProvider: true,
	codeLensProvider: { resolveProvider: false },
	executeCommandProvider: { commands: [RUN_TEST_COMMAND, EXPLAIN_COMMAND, CONVERT_COMMAND] },
};

/** The error code RequestFailed of LSP 3.17. */
const REQUEST_FAILED_CODE = -32803;

/** Registers the handlers of tokens, hints, lenses and their commands. */
export function registerLensHandlers(connection: Connection, deps: FeatureDeps): void {
	const { documents, publisher } = deps;
	const findDocument = requestedDocument(deps);
	/** The places that the tests of the last configuration reach. Cached, so that the tests run again only after a change. */
	let reachedCache:
		| { readonly document: CompileResult['document']; readonly tests: string; readonly reached: ReachedPlaces }
		| undefined;
	const placesReachedBy = async (compiled: CompileResult): Promise<ReachedPlaces> => {
		const { document } = compiled;
		const tests = compiled.tests.map(({ span }) => span.source.text.slice(span.start)).join('\0');
		if (!reachedCache || reachedCache.document !== document || reachedCache.tests !== tests)
			reachedCache = { document, tests, reached: await placesReachedByTests(compiled, ISOLATED_DRY_RUN) };
		return reachedCache.reached;
	};

	/** Returns the compiled configuration that a file belongs to, from the current texts. */
	const compileResultOf = async (path: string): Promise<CompileResult | undefined> => {
		await publisher.findings(path);
		const [root] = deps.getWorkspace().rootsOf(path);
		return root === undefined ? undefined : deps.getWorkspace().lastResultOf(root)?.compiled;
	};

	connection.languages.semanticTokens.on(({ textDocument }) => {
		const requestedDocument = findDocument(textDocument.uri);
		const encodedTokens: number[] = [];
		let previousLine = 0;
		let previousCharacter = 0;
		for (const { start, end, type, definition } of requestedDocument ? semanticTokens(requestedDocument.syntax) : []) {
			// Not all editors support tokens that span several lines.
			for (const linePart of linePartsOf(requestedDocument!.syntax.text, start, end)) {
				const { start: startPosition, end: endPosition } = documents.toRange(
					requestedDocument!.path,
					requestedDocument!.syntax.text,
					linePart,
				);
				const column =
					startPosition.line === previousLine ? startPosition.character - previousCharacter : startPosition.character;
				encodedTokens.push(
					startPosition.line - previousLine,
					column,
					endPosition.character - startPosition.character,
					TOKEN_TYPES.indexOf(type),
					definition ? 1 : 0,
				);
				previousLine = startPosition.line;
				previousCharacter = startPosition.character;
			}
		}
		return { data: encodedTokens };
	});
	connection.languages.inlayHint.on(async ({ textDocument, range }) => {
		const path = documents.pathOf(textDocument.uri);
		const version = documents.get(path)?.version;
		const publishedFindings = await publisher.findings(path);
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument || requestedDocument.document.version !== version) return [];
		const start = requestedDocument.document.offsetAt(range.start);
		const end = requestedDocument.document.offsetAt(range.end);
		return inlayHints(
			requestedDocument.syntax,
			publishedFindings.map(({ finding }) => finding),
		)
			.filter(({ offset }) => start <= offset && offset <= end)
			.map(({ offset, label, tooltip, side }) => ({
				position: requestedDocument.document.positionAt(offset),
				...{ label, tooltip, kind: InlayHintKind.Type },
				...{ paddingLeft: side === 'after', paddingRight: side === 'before' },
			}));
	});
	connection.onCodeLens(async ({ textDocument }): Promise<CodeLens[]> => {
		const path = documents.pathOf(textDocument.uri);
		const compiled = await compileResultOf(path);
		const reachedPlaces = compiled ? await placesReachedBy(compiled) : [];
		const requestedDocument = findDocument(textDocument.uri);
		if (!requestedDocument || !publisher.isCurrent) return [];
		return lensesOf(requestedDocument.syntax, compiled, reachedPlaces).map(lens => ({
			range: documents.toRange(requestedDocument.path, requestedDocument.syntax.text, lens),
			command: commandOf(lens, textDocument.uri),
		}));
	});
	connection.onExecuteCommand(async ({ command, arguments: commandArguments = [] }) => {
		if (command === CONVERT_COMMAND) return convertDocument(connection, deps, commandArguments);
		// If the third argument (`isQuiet`) is true, the client shows the result itself.
		const [uri, subject, isQuiet] = commandArguments as readonly unknown[];
		const { window } = connection;
		const requestFailure = (message: string): ResponseError => new ResponseError(REQUEST_FAILED_CODE, message);
		if (typeof uri !== 'string' || typeof subject !== 'string')
			return requestFailure(`${command} needs a document and a name or request.`);
		const compiled = await compileResultOf(documents.pathOf(uri));
		if (!compiled?.plan) return requestFailure('The configuration is not open, or it has errors.');
		// The user has asked for this run, so it may read files below the sites' roots, like `svc validate`.
		const realEnvironment = dryRunEnvironment(deps.getWorkspace().reader.workingDirectory);
		if (command === RUN_TEST_COMMAND) {
			const result = await runTest(compiled, subject, realEnvironment);
			if (!result) return requestFailure(`There is no test \`${subject}\`.`);
			const { passed, text, failedAt } = result;
			if (isQuiet !== true) void (passed ? window.showInformationMessage(text) : window.showErrorMessage(text));
			return { passed, text, location: failedAt && documents.toLocation(deps.getWorkspace(), failedAt) };
		}
		const text = await explainRequest(compiled, subject, realEnvironment);
		if (text === undefined)
			return requestFailure(
				`Nothing listens where \`${subject}\` leads, or it is not a request such as \`POST https://example.com/path\`.`,
			);
		if (isQuiet !== true) void window.showInformationMessage(text);
		return { text };
	});
}

function commandOf(lens: Lens, uri: string): { title: string; command: string; arguments?: string[] } {
	switch (lens.kind) {
		case 'test':
			return { title: 'Run this test', command: RUN_TEST_COMMAND, arguments: [uri, lens.name] };
		case 'explain':
			return { title: 'Explain a request', command: EXPLAIN_COMMAND, arguments: [uri, lens.url] };
		case 'coverage': {
			const countText =
				lens.tests === 0 ? 'No test covers' : lens.tests === 1 ? '1 test covers' : `${lens.tests} tests cover`;
			// An editor shows a lens without a command as text that cannot be clicked.
			return { title: `${countText} this ${lens.of}`, command: '' };
		}
	}
}

/** Splits a range at line breaks, and yields the part on each line. */
function* linePartsOf(text: string, start: number, end: number): Generator<{ start: number; end: number }> {
	for (let at = start; at < end; ) {
		const newline = text.indexOf('\n', at);
		const lineEnd = newline === -1 || newline >= end ? end : newline;
		if (lineEnd > at) yield { start: at, end: lineEnd };
		at = lineEnd + 1;
	}
}

/** The command that converts a Caddyfile, or one block of it, to a Configfile, in a new file beside it. */
import path from 'node:path';
import {
	type ClientCapabilities,
	type CodeAction,
	CodeActionKind,
	type Connection,
	Position,
	ResourceOperationKind,
	ResponseError,
	type WorkspaceEdit,
} from 'vscode-languageserver';
import { convertBlock, convertibleBlock, convertToConfigfile } from '../../compiler/queries/conversion.ts';
import type { TextSyntax } from '../../compiler/queries/text-syntax.ts';
import type { FeatureDeps } from './feature-deps.ts';
import type { RequestedDocument } from './requested-document.ts';

export const CONVERT_COMMAND = 'svc.convertToConfigfile';

/** The error code RequestFailed of LSP 3.17. */
const REQUEST_FAILED_CODE = -32803;

/** Reports whether a client can create the file for a converted configuration. */
export function canCreateFiles({ workspace }: ClientCapabilities): boolean {
	const { documentChanges, resourceOperations = [] } = workspace?.workspaceEdit ?? {};
	return (
		workspace?.applyEdit === true &&
		documentChanges === true &&
		resourceOperations.includes(ResourceOperationKind.Create)
	);
}

/**
 * Returns actions that convert the document, or the block at `position`. A conversion compiles several times, so it is performed
 * only when the user chooses the action.
 */
export function conversionActions({ document, syntax }: RequestedDocument, position: Position): CodeAction[] {
	if (syntax.dialect !== 'compatfile') return [];
	const createAction = (title: string, ...furtherArguments: readonly unknown[]): CodeAction => ({
		title,
		kind: CodeActionKind.RefactorRewrite,
		command: { title, command: CONVERT_COMMAND, arguments: [document.uri, ...furtherArguments] },
	});
	const block = convertibleBlock(syntax, document.offsetAt(position));
	return [
		...(block ? [createAction(`Convert this ${block.kind} to a Configfile`, position)] : []),
		createAction('Convert to a Configfile'),
	];
}

/**
 * Converts the document with a URI, or its block at `position`. Asks the client to create the file, and returns its URI and text,
 * or an error that says why the file was not created.
 */
export async function convertDocument(
	connection: Connection,
	{ documents, getWorkspace }: FeatureDeps,
	[uri, position]: readonly unknown[],
): Promise<{ readonly uri: string; readonly text: string } | ResponseError> {
	const file = typeof uri === 'string' ? documents.pathOf(uri) : '';
	const document = documents.get(file);
	const requestFailure = (problem: string): ResponseError => new ResponseError(REQUEST_FAILED_CODE, problem);
	if (!document) return requestFailure(`${CONVERT_COMMAND} needs an open document.`);
	if (position !== undefined && !Position.is(position))
		return requestFailure(`${CONVERT_COMMAND} needs a position after the document.`);
	const input = { text: document.getText(), name: path.basename(file), path: file };
	const { reader } = getWorkspace();
	const offset = position && document.offsetAt(position);
	const conversion = offset === undefined ? convertToConfigfile(input, reader) : convertBlock(input, offset, reader);
	if ('problem' in conversion) {
		const linePrefix =
			conversion.offset === undefined ? '' : `Line ${document.positionAt(conversion.offset).line + 1}: `;
		return requestFailure(`${linePrefix}${conversion.problem}`);
	}
	const syntax = getWorkspace().syntaxOf(file);
	const newFileName =
		(offset !== undefined && syntax && blockFileName(syntax, offset)) || convertedFileName(path.basename(file));
	const newPath = path.join(path.dirname(file), newFileName);
	// If an editor is asked to create a file that exists, it may empty the file.
	if (reader.kind(newPath) !== undefined)
		return requestFailure(`\`${newFileName}\` exists. Rename or delete it first.`);
	const newUri = documents.uriOf(newPath);
	const start = { line: 0, character: 0 };
	const edit: WorkspaceEdit = {
		documentChanges: [
			{ kind: 'create', uri: newUri },
			{
				textDocument: { uri: newUri, version: null },
				edits: [{ range: { start, end: start }, newText: conversion.text }],
			},
		],
	};
	const { applied, failureReason } =
		(await connection.workspace.applyEdit({ label: 'Convert to a Configfile', edit })) ?? {};
	if (applied === false)
		return requestFailure(`The editor did not create \`${newFileName}\`: ${failureReason ?? 'it gives no reason.'}`);
	return { uri: newUri, text: conversion.text };
}

/** Returns the name of the new file for the block at `offset`, such as `example.com.configfile`. */
function blockFileName(syntax: TextSyntax, offset: number): string {
	const name = convertibleBlock(syntax, offset)?.name ?? '';
	const stem = name
		.replace(/^https?:\/\//, '')
		.replace(/[^\w.-]+/g, '-')
		.replace(/^[.-]+|[.-]+$/g, '');
	return `${stem || 'site'}.configfile`;
}

function convertedFileName(name: string): string {
	const stem = /^(.+)\.(?:caddy|compat)file$/i.exec(name)?.[1];
	return stem === undefined ? 'Configfile' : `${stem}.configfile`;
}

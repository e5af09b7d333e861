/** The command that converts a Caddyfile to a Configfile, in a new file beside it. */
import path from 'node:path';
import { type Connection, ResponseError, type WorkspaceEdit } from 'vscode-languageserver';
import { convertedToConfigfile } from '../../compiler/queries/conversion.ts';
import type { FeatureDeps } from './features.ts';

export const CONVERT = 'svc.convertToConfigfile';

/** LSP 3.17: RequestFailed. */
const REQUEST_FAILED = -32803;

/** Converts the document of a URI. Answers with the new text; asks the client to create the file, or says why it cannot be. */
export async function convertDocument(
	connection: Connection,
	{ documents, workspace }: FeatureDeps,
	uri: unknown,
): Promise<{ readonly uri: string; readonly text: string } | ResponseError> {
	const file = typeof uri === 'string' ? documents.pathOf(uri) : '';
	const document = documents.get(file);
	if (!document) return new ResponseError(REQUEST_FAILED, `${CONVERT} needs an open document.`);
	const input = { text: document.getText(), name: path.basename(file), path: file };
	const conversion = convertedToConfigfile(input, workspace().reader);
	if ('problem' in conversion) {
		const line = conversion.at === undefined ? '' : `Line ${document.positionAt(conversion.at).line + 1}: `;
		return new ResponseError(REQUEST_FAILED, `${line}${conversion.problem}`);
	}
	const target = documents.uriOf(path.join(path.dirname(file), convertedName(path.basename(file))));
	const start = { line: 0, character: 0 };
	const edit: WorkspaceEdit = {
		documentChanges: [
			// An existing file stays as it is: the client then refuses the edit.
			{ kind: 'create', uri: target },
			{
				textDocument: { uri: target, version: null },
				edits: [{ range: { start, end: start }, newText: conversion.text }],
			},
		],
	};
	await connection.workspace.applyEdit({ label: 'Convert to a Configfile', edit });
	return { uri: target, text: conversion.text };
}

function convertedName(name: string): string {
	const stem = /^(.+)\.(?:caddy|compat)file$/i.exec(name)?.[1];
	return stem === undefined ? 'Configfile' : `${stem}.configfile`;
}

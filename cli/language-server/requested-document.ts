/** Finds the document that a request refers to. */
import type { TextDocument } from 'vscode-languageserver-textdocument';
import type { TextSyntax } from '../../compiler/queries/text-syntax.ts';
import type { Workspace } from '../../compiler/queries/workspace.ts';
import type { FeatureDeps } from './feature-deps.ts';

/** An open document that a request refers to. */
export interface RequestedDocument {
	readonly document: TextDocument;
	readonly path: string;
	readonly syntax: TextSyntax;
	readonly workspace: Workspace;
}

/** Returns a function that finds an open document by its URI. */
export function requestedDocument({
	documents,
	getWorkspace,
}: FeatureDeps): (uri: string) => RequestedDocument | undefined {
	return uri => {
		const path = documents.pathOf(uri);
		const document = documents.get(path);
		const currentWorkspace = getWorkspace();
		const syntax = document && currentWorkspace.syntaxOf(path);
		return syntax && { document, path, syntax, workspace: currentWorkspace };
	};
}

/** Links from the words of a text to the files that they name. */
import { registryOf } from '../lower/registry.ts';
import { filePathsOf } from './observed-lowering.ts';
import { everyLine, type FileRange, kindOfTopLevel, placeAt, type TextRange, type TextSyntax } from './text-syntax.ts';
import type { Workspace } from './workspace.ts';

/** A word that names an existing file or folder. */
export interface FileLink extends TextRange {
	readonly path: string;
}

/** Returns the links in a text: to imported files, and to files and folders that directives name. */
export function linksOf(workspace: Workspace, syntax: TextSyntax): FileLink[] {
	const links: FileLink[] = [];
	for (const { line } of everyLine(syntax.lines)) {
		const [keyword, target] = line.words;
		if (keyword?.text !== 'import' || keyword.quote !== 'none' || !target) continue;
		const [path] = workspace.filesOfImport(target.text, syntax.path);
		if (path !== undefined) links.push({ start: target.span.start, end: target.span.end, path });
	}
	const { directives } = registryOf(syntax.dialect);
	for (const line of syntax.lines) {
		const kind = kindOfTopLevel(line, syntax.dialect, directives);
		for (const { span, path } of filePathsOf(line, kind, syntax)) {
			const kind = workspace.reader.kind(path);
			if (kind === 'file' || kind === 'directory') links.push({ start: span.start, end: span.end, path });
		}
	}
	return links;
}

/** Returns an empty range at the start of each file that the `import` at an offset names. */
export function importedFiles(workspace: Workspace, syntax: TextSyntax, offset: number): FileRange[] {
	const { line, word, wordIndex } = placeAt(syntax, offset);
	if (!word || wordIndex !== 1 || line?.words[0]?.text !== 'import') return [];
	return workspace.filesOfImport(word.text, syntax.path).map(path => ({ path, start: 0, end: 0 }));
}

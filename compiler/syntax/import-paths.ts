/** Resolves the path or pattern of an `import`, relative to the folder of the importing file. */
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { nearestName } from '../diagnostics/suggest.ts';
import { ReadError, type Reader } from '../source/reader.ts';

/** The files that an `import` names, in lexical order, and the problem with the import, if there is one. */
export interface ImportPaths {
	readonly files: readonly { readonly path: string; readonly name: string }[];
	/**
	 * The diagnostic to report: an error, or a warning if a pattern matches nothing. `files` need not be empty if there is one.
	 */
	readonly problem?: {
		readonly code: string;
		readonly severity: 'error' | 'warning';
		readonly message: string;
		readonly hint?: string;
	};
}

/**
 * Finds the files that `import pattern` names. `folder` is the absolute path of the folder to which the pattern is relative.
 * `importer` is the name of the importing file in diagnostics, from which the names of the imported files are derived. `snippets`
 * are the names of snippets, for suggestions.
 */
export function importPaths(
	pattern: string,
	folder: string,
	importer: string,
	snippets: Iterable<string>,
	reader: Reader,
): ImportPaths {
	const displayNameOf = (path: string) => (isAbsolute(path) ? path : join(dirname(importer), path));
	if (!/[*?[]/.test(pattern)) {
		const path = resolve(folder, pattern);
		const kind = reader.kind(path);
		if (kind === 'file' || kind === 'withheld') return { files: [{ path, name: displayNameOf(pattern) }] };
		if (kind === 'directory') return { files: [], problem: directoryProblem(pattern) };
		if (kind === 'other') {
			const message = `Could not import ${pattern}: is neither a file nor a directory`;
			const hint = 'Pipes, sockets and devices cannot be imported.';
			return { files: [], problem: { code: 'import/not-a-file', severity: 'error', message, hint } };
		}
		const nearest = nearestName(pattern, [...snippets, ...siblingNames(pattern, folder, reader)]);
		const hint = nearest ? `Did you mean \`${nearest}\`?` : `No snippet or file has this name; looked for ${path}.`;
		const message = `File to import not found: ${pattern}`;
		return { files: [], problem: { code: 'import/not-found', severity: 'error', message, hint } };
	}
	if (
		pattern.split('*').length > 2 ||
		pattern.split('?').length > 2 ||
		(pattern.includes('[') && pattern.includes(']'))
	) {
		const message = `Glob pattern may only contain one wildcard (*), but has others: ${pattern}`;
		const hint = 'Use one `*` and at most one `?`, and no `[…]`.';
		return { files: [], problem: { code: 'import/glob', severity: 'error', message, hint } };
	}
	const matchedPaths = matchingPaths(pattern, folder, reader);
	if (matchedPaths.length === 0) {
		const message = `No files match the import pattern ${pattern}`;
		return { files: [], problem: { code: 'import/no-match', severity: 'warning', message } };
	}
	const matchedDirectory = matchedPaths.find(match => reader.kind(resolve(folder, match)) === 'directory');
	const files = matchedPaths
		.filter(match => match !== matchedDirectory && reader.kind(resolve(folder, match)) === 'file')
		.map(match => ({ path: resolve(folder, match), name: displayNameOf(match) }));
	return matchedDirectory === undefined ? { files } : { files, problem: directoryProblem(matchedDirectory) };
}

function directoryProblem(path: string): NonNullable<ImportPaths['problem']> {
	const message = `Could not import ${path}: is a directory`;
	return {
		code: 'import/directory',
		severity: 'error',
		message,
		hint: `Import its files with \`${join(path, '*')}\`.`,
	};
}

function siblingNames(pattern: string, folder: string, reader: Reader): string[] {
	const subfolder = dirname(pattern);
	try {
		return reader.list(resolve(folder, subfolder)).map(name => (subfolder === '.' ? name : join(subfolder, name)));
	} catch (error) {
		if (error instanceof ReadError) return [];
		throw error;
	}
}

/** Returns the paths that match a pattern, in lexical order. They are relative if the pattern is. */
function matchingPaths(pattern: string, folder: string, reader: Reader): string[] {
	let paths = [isAbsolute(pattern) ? '/' : ''];
	const segments = pattern.split('/').filter(segment => segment !== '');
	for (const [index, segment] of segments.entries()) {
		if (!/[*?[]/.test(segment)) {
			paths = paths.map(path => join(path, segment)).filter(path => reader.kind(resolve(folder, path)) !== undefined);
			continue;
		}
		const segmentPattern = new RegExp(
			`^${segment
				.replace(/[\\^$.|+()[\]{}]/g, '\\$&')
				.replaceAll('*', '.*')
				.replaceAll('?', '.')}$`,
			'su',
		);
		const matchesHidden = index < segments.length - 1 || !segment.startsWith('*');
		paths = paths.flatMap(path => {
			const absolutePath = resolve(folder, path);
			if (reader.kind(absolutePath) !== 'directory') return [];
			let entryNames: readonly string[];
			try {
				entryNames = reader.list(absolutePath);
			} catch (error) {
				if (error instanceof ReadError) return [];
				throw error;
			}
			return entryNames
				.filter(name => segmentPattern.test(name) && (matchesHidden || !name.startsWith('.')))
				.map(name => join(path, name));
		});
	}
	return paths.sort();
}

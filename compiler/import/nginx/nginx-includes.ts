/** Replaces the `include` lines of an nginx.conf by the files that they name. */
import type { Report } from '../../diagnostics/diagnostic.ts';
import { ReadError, type Reader } from '../../source/reader.ts';
import { Source } from '../../source/source.ts';
import { type NginxDirective, parseNginx } from './nginx-parser.ts';

/** Maximum number of files that a configuration may include, and maximum depth of inclusions. The limits end endless inclusion. */
const MOST_FILES = 1000;
const DEEPEST = 20;

/** Reads and parses a file with everything that it includes. Relative names start from the folder of the main file. */
export function readNginx(main: Source, folder: string, reader: Reader, report: Report): NginxDirective[] {
	let files = 0;
	const expanded = (directives: readonly NginxDirective[], depth: number): NginxDirective[] =>
		directives.flatMap(one => {
			if (one.name === 'include' && one.block === undefined) return included(one, depth);
			return [one.block ? { ...one, block: expanded(one.block, depth) } : one];
		});
	const included = (line: NginxDirective, depth: number): NginxDirective[] => {
		const refuse = (what: string, message: string, hint: string): NginxDirective[] => {
			report({ code: `nginx/${what}`, severity: 'error', message, span: line.span, hint });
			return [];
		};
		const [name] = line.args;
		if (name === undefined) return refuse('include-nothing', '`include` names no file.', 'Write the name after it.');
		// The list of content types is built in.
		if (/(^|\/)mime\.types$/.test(name)) return [];
		if (depth >= DEEPEST) {
			return refuse(
				'include-depth',
				`Files include each other more than ${DEEPEST} deep.`,
				'Look for a file that includes itself.',
			);
		}
		const path = name.startsWith('/') ? name : `${folder}/${name}`;
		const found = /[*?[]/.test(path) ? matching(path, reader) : [path];
		return found.flatMap(file => {
			if (++files > MOST_FILES) {
				return files > MOST_FILES + 1
					? []
					: refuse('include-count', `More than ${MOST_FILES} files are included.`, 'Import the files separately.');
			}
			try {
				const text = reader.readText(file);
				const source = new Source({ name: file, text, path: file, importedAt: line.span, importedAs: name });
				return expanded(parseNginx(source, report), depth + 1);
			} catch (error) {
				if (!(error instanceof ReadError)) throw error;
				return refuse(
					'include-unreadable',
					`\`${name}\` cannot be read: ${error.code}.`,
					'Relative names start from the folder of the imported file.',
				);
			}
		});
	};
	return expanded(parseNginx(main, report), 0);
}

/** Returns the files that a pattern matches, in lexical order. `*`, `?` and `[…]` do not match slashes. */
function matching(pattern: string, reader: Reader): string[] {
	let paths = [''];
	for (const part of pattern.split('/').slice(1)) {
		if (!/[*?[]/.test(part)) {
			paths = paths.map(folder => `${folder}/${part}`);
			continue;
		}
		const regexp = new RegExp(
			`^${part
				.replace(/[.+^$(){}|\\]/g, '\\$&')
				.replace(/\*/g, '.*')
				.replace(/\?/g, '.')
				.replace(/\[!/g, '[^')}$`,
		);
		paths = paths.flatMap(folder => {
			try {
				return reader
					.list(folder === '' ? '/' : folder)
					.filter(name => regexp.test(name) && (!name.startsWith('.') || part.startsWith('.')))
					.map(name => `${folder}/${name}`);
			} catch {
				return [];
			}
		});
	}
	return paths.filter(file => reader.kind(file) === 'file');
}

/** Replaces the `include` lines of an nginx.conf by the files that they name. */
import type { Report } from '../../diagnostics/diagnostic.ts';
import { ReadError, type Reader } from '../../source/reader.ts';
import { Source } from '../../source/source.ts';
import { type NginxDirective, parseNginx } from './nginx-parser.ts';

/** Maximum number of files that a configuration may include, and maximum depth of inclusions, so that circular inclusion ends. */
const MAX_INCLUDED_FILES = 1000;
const MAX_INCLUDE_DEPTH = 20;

/**
 * Files that come with every nginx. The server sends their FastCGI parameters by default, so a missing file is not an error. An
 * existing one is read, because administrators may have changed it.
 */
const FASTCGI_PARAMETER_FILE = /(^|\/)fastcgi(_params|\.conf)$/;

/** Parses a file and all files that it includes. Relative paths start from `folder`, the folder of the main file. */
export function readNginx(mainSource: Source, folder: string, reader: Reader, report: Report): NginxDirective[] {
	let fileCount = 0;
	const expandIncludes = (directives: readonly NginxDirective[], depth: number): NginxDirective[] =>
		directives.flatMap(directive => {
			if (directive.name === 'include' && directive.block === undefined) return readInclude(directive, depth);
			return [directive.block ? { ...directive, block: expandIncludes(directive.block, depth) } : directive];
		});
	const readInclude = (includeDirective: NginxDirective, depth: number): NginxDirective[] => {
		const refuse = (code: string, message: string, hint: string): NginxDirective[] => {
			report({ code: `nginx/${code}`, severity: 'error', message, span: includeDirective.span, hint });
			return [];
		};
		const [fileName] = includeDirective.args;
		if (fileName === undefined)
			return refuse('include-nothing', '`include` names no file.', 'Write the name after it.');
		// The content types in this file are built in.
		if (/(^|\/)mime\.types$/.test(fileName)) return [];
		if (depth >= MAX_INCLUDE_DEPTH) {
			return refuse(
				'include-depth',
				`Files include each other more than ${MAX_INCLUDE_DEPTH} deep.`,
				'Look for a file that includes itself.',
			);
		}
		const pathPattern = fileName.startsWith('/') ? fileName : `${folder}/${fileName}`;
		const paths = /[*?[]/.test(pathPattern) ? matchingFiles(pathPattern, reader) : [pathPattern];
		return paths.flatMap(file => {
			if (++fileCount > MAX_INCLUDED_FILES) {
				return fileCount > MAX_INCLUDED_FILES + 1
					? []
					: refuse(
							'include-count',
							`More than ${MAX_INCLUDED_FILES} files are included.`,
							'Import the files separately.',
						);
			}
			try {
				const text = reader.readText(file);
				const source = new Source({
					name: file,
					text,
					path: file,
					importedAt: includeDirective.span,
					importedAs: fileName,
				});
				return expandIncludes(parseNginx(source, report), depth + 1);
			} catch (error) {
				if (!(error instanceof ReadError)) throw error;
				if (error.code === 'ENOENT' && FASTCGI_PARAMETER_FILE.test(fileName)) return [];
				return refuse(
					'include-unreadable',
					`\`${fileName}\` cannot be read: ${error.code === 'ENOENT' ? 'it does not exist' : error.code}.`,
					'Relative names start from the folder of the imported file.',
				);
			}
		});
	};
	return expandIncludes(parseNginx(mainSource, report), 0);
}

/** Returns the files that a pattern matches, in lexical order. `*`, `?` and `[…]` do not match slashes. */
function matchingFiles(pattern: string, reader: Reader): string[] {
	let paths = [''];
	for (const segment of pattern.split('/').slice(1)) {
		if (!/[*?[]/.test(segment)) {
			paths = paths.map(folder => `${folder}/${segment}`);
			continue;
		}
		const segmentRegexp = new RegExp(
			`^${segment
				.replace(/[.+^$(){}|\\]/g, '\\$&')
				.replace(/\*/g, '.*')
				.replace(/\?/g, '.')
				.replace(/\[!/g, '[^')}$`,
		);
		paths = paths.flatMap(folder => {
			try {
				return reader
					.list(folder === '' ? '/' : folder)
					.filter(name => segmentRegexp.test(name) && (!name.startsWith('.') || segment.startsWith('.')))
					.map(name => `${folder}/${name}`);
			} catch {
				return [];
			}
		});
	}
	return paths.filter(file => reader.kind(file) === 'file');
}

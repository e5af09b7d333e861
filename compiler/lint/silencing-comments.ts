/**
 * Comments that silence findings. `# lint: off rule/name other/*` at the end of a line applies to that line. On a line of its own,
 * it applies to the next line and the block that this line opens. `# lint: off-file …` applies to the whole file. A reason may
 * follow ` -- `. Errors cannot be silenced.
 */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import { didYouMean } from '../diagnostics/suggest.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Source, SourceSpan } from '../source/source.ts';
import { endOfNextLine, scanComments } from '../syntax/scan-comments.ts';

/** One name in a silencing comment, with the range of text to which it applies. */
interface Silence {
	/** A rule, all rules of an area (`area/*`), or `*`. */
	readonly name: string;
	readonly span: SourceSpan;
	readonly start: number;
	readonly end: number;
	hasSilenced: boolean;
}

const SILENCING_COMMENT = /^#\s*lint:\s*(off-file|off)\b([^\n]*?)(?:\s--(?:\s[^\n]*)?)?\s*$/;

/** The silencing comments of all files. Each file is scanned once. */
export class SilencingComments {
	readonly #dialect: Dialect;
	readonly #silencesByFile = new Map<string, readonly Silence[]>();

	constructor(dialect: Dialect) {
		this.#dialect = dialect;
	}

	/** Scans the comments of a file, so that {@link reportUnused} covers the file even if it has no findings. */
	addFile(source: Source): void {
		this.#silencesOf(source);
	}

	/** Returns the findings that are not silenced, in order. */
	filter(diagnostics: readonly Diagnostic[]): Diagnostic[] {
		return diagnostics.filter(diagnostic => diagnostic.severity === 'error' || !this.#isSilenced(diagnostic));
	}

	/** Reports names in silencing comments that are not rules, and names that have silenced no finding. */
	reportUnused(ruleNames: readonly string[], report: Report): void {
		for (const silences of this.#silencesByFile.values()) {
			for (const { name, span, hasSilenced } of silences) {
				if (hasSilenced) continue;
				const isKnownName = name === '*' || ruleNames.some(rule => rule === name || matchesCode(name, rule));
				if (isKnownName) {
					report({
						code: 'lint/silences-nothing',
						severity: 'note',
						message:
							name === '*' ? 'This comment silences nothing.' : `There is no \`${name}\` finding to silence here.`,
						span,
						hint: 'Remove it, so that it cannot hide a later finding.',
					});
					continue;
				}
				report({
					code: 'lint/unknown-rule',
					severity: 'warning',
					message: `\`${name}\` is not a lint rule.`,
					span,
					...didYouMean({ text: name, span }, ruleNames),
					hint: '`svc list-modules` lists the rules.',
				});
			}
		}
	}

	#isSilenced({ code, span }: Diagnostic): boolean {
		let isSilenced = false;
		for (let currentSpan = span; currentSpan; currentSpan = currentSpan.source.importedAt) {
			for (const silence of this.#silencesOf(currentSpan.source)) {
				if (silence.start > currentSpan.start || currentSpan.start >= silence.end || !matchesCode(silence.name, code))
					continue;
				silence.hasSilenced = true;
				isSilenced = true;
			}
		}
		return isSilenced;
	}

	#silencesOf(source: Source): readonly Silence[] {
		const key = source.path ?? source.name;
		let silences = this.#silencesByFile.get(key);
		if (!silences) {
			silences = source.text.includes('lint:') ? parseSilences(source, this.#dialect) : [];
			this.#silencesByFile.set(key, silences);
		}
		return silences;
	}
}

function parseSilences(source: Source, dialect: Dialect): Silence[] {
	const { text } = source;
	const silences: Silence[] = [];
	for (const { start, end, isAlone } of scanComments(text, dialect)) {
		const match = SILENCING_COMMENT.exec(text.slice(start, end));
		if (!match) continue;
		const [comment, keyword, nameList] = match as unknown as [string, string, string];
		const lineStart = text.lastIndexOf('\n', start - 1) + 1;
		const newline = text.indexOf('\n', start);
		const endOfLine = newline === -1 ? text.length : newline;
		const [rangeStart, rangeEnd] =
			keyword === 'off-file'
				? [0, text.length + 1]
				: isAlone
					? [start, endOfNextLine(text, endOfLine, dialect)]
					: [lineStart, endOfLine + 1];
		const listStart = start + comment.indexOf(nameList, comment.indexOf(keyword) + keyword.length);
		const nameMatches = [...nameList.matchAll(/[^\s,]+/g)];
		if (nameMatches.length === 0) {
			silences.push({
				name: '*',
				span: { source, start, end: start + comment.trimEnd().length },
				start: rangeStart,
				end: rangeEnd,
				hasSilenced: false,
			});
		}
		for (const { 0: name, index } of nameMatches) {
			const nameStart = listStart + index;
			silences.push({
				name,
				span: { source, start: nameStart, end: nameStart + name.length },
				start: rangeStart,
				end: rangeEnd,
				hasSilenced: false,
			});
		}
	}
	return silences;
}

function matchesCode(name: string, code: string): boolean {
	return name === '*' || name === code || (name.endsWith('/*') && code.startsWith(name.slice(0, -1)));
}

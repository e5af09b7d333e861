/**
 * Comments that silence findings. `# lint: off rule/name other/*` at the end of a line applies to that line; on a line of its
 * own, to the next line and the block that it opens. `# lint: off-file …` applies to the whole file. A reason may follow ` -- `.
 * Errors cannot be silenced.
 */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import { didYouMean } from '../diagnostics/suggest.ts';
import type { Dialect } from '../dialects/dialect.ts';
import type { Source, SourceSpan } from '../source/source.ts';
import { endOfNextLine, scanComments } from '../syntax/scan-comments.ts';

/** One name in a silencing comment, and the span of text to which it applies. */
interface Silence {
	/** A rule, all rules of an area (`area/*`), or `*`. */
	readonly name: string;
	readonly span: SourceSpan;
	readonly from: number;
	readonly to: number;
	used: boolean;
}

const COMMENT = /^#\s*lint:\s*(off-file|off)\b([^\n]*?)(?:\s--(?:\s[^\n]*)?)?\s*$/;

/** The silencing comments of all files. Each file is scanned once. */
export class SilencingComments {
	readonly #dialect: Dialect;
	readonly #known = new Map<string, readonly Silence[]>();

	constructor(dialect: Dialect) {
		this.#dialect = dialect;
	}

	/** Scans the comments of a file, so that {@link unused} covers it. */
	add(source: Source): void {
		this.#of(source);
	}

	/** Returns the findings that are not silenced, in order. */
	filter(diagnostics: readonly Diagnostic[]): Diagnostic[] {
		return diagnostics.filter(one => one.severity === 'error' || !this.#silenced(one));
	}

	/** Reports names of unknown rules, and names that silenced no finding. */
	unused(rules: readonly string[], report: Report): void {
		for (const silences of this.#known.values()) {
			for (const { name, span, used } of silences) {
				if (used) continue;
				const known = name === '*' || rules.some(rule => rule === name || matches(name, rule));
				if (known) {
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
					...didYouMean({ text: name, span }, rules),
					hint: '`svc list-modules` lists the rules.',
				});
			}
		}
	}

	#silenced({ code, span }: Diagnostic): boolean {
		let silenced = false;
		for (let at = span; at; at = at.source.importedAt) {
			for (const silence of this.#of(at.source)) {
				if (silence.from > at.start || at.start >= silence.to || !matches(silence.name, code)) continue;
				silence.used = true;
				silenced = true;
			}
		}
		return silenced;
	}

	#of(source: Source): readonly Silence[] {
		const key = source.path ?? source.name;
		let silences = this.#known.get(key);
		if (!silences) {
			silences = source.text.includes('lint:') ? read(source, this.#dialect) : [];
			this.#known.set(key, silences);
		}
		return silences;
	}
}

function read(source: Source, dialect: Dialect): Silence[] {
	const { text } = source;
	const silences: Silence[] = [];
	for (const { start, end, alone } of scanComments(text, dialect)) {
		const match = COMMENT.exec(text.slice(start, end));
		if (!match) continue;
		const [whole, scope, list] = match as unknown as [string, string, string];
		const lineStart = text.lastIndexOf('\n', start - 1) + 1;
		const lineEnd = text.indexOf('\n', start);
		const stop = lineEnd === -1 ? text.length : lineEnd;
		const [from, to] =
			scope === 'off-file'
				? [0, text.length + 1]
				: alone
					? [start, endOfNextLine(text, stop, dialect)]
					: [lineStart, stop + 1];
		const listAt = start + whole.indexOf(list, whole.indexOf(scope) + scope.length);
		const names = [...list.matchAll(/[^\s,]+/g)];
		if (names.length === 0) {
			silences.push({ name: '*', span: { source, start, end: start + whole.trimEnd().length }, from, to, used: false });
		}
		for (const { 0: name, index } of names) {
			const at = listAt + index;
			silences.push({ name, span: { source, start: at, end: at + name.length }, from, to, used: false });
		}
	}
	return silences;
}

function matches(name: string, code: string): boolean {
	return name === '*' || name === code || (name.endsWith('/*') && code.startsWith(name.slice(0, -1)));
}

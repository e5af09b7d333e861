/** Collects the addresses of a site, which may extend over several lines, and rejects words that cannot be addresses. */
import type { SourceSpan } from '../source/source.ts';
import type { Word } from './ast.ts';
import type { ExpansionReport } from './expansion-report.ts';
import type { ParsedWord } from './parsed-file.ts';
import { fileAndLine, structureMistake } from './structure-mistake.ts';

/** The addresses of the current site. Their meaning is checked during lowering. */
export class SiteAddresses {
	/** True if a word of the current site's addresses has been added. */
	hasStarted = false;
	/** True if the last word ended with a comma, so that the next line continues the list. */
	expectsAddress = false;
	readonly #report: ExpansionReport;
	readonly #directives: ReadonlySet<string>;
	#words: Word[] = [];
	#hasRejectedWord = false;
	#lastCommaSpan: SourceSpan | undefined;

	constructor(report: ExpansionReport, directives: ReadonlySet<string>) {
		this.#report = report;
		this.#directives = directives;
	}

	/**
	 * Adds the words of a line. If they are a directive outside of any site, reports it and returns `directive` without adding
	 * anything. `silent` suppresses the report, for directives that follow such a directive.
	 */
	addWords(words: readonly ParsedWord[], silent: boolean): 'address' | 'directive' {
		const firstWord = words[0];
		if (firstWord && !this.hasStarted && this.#directives.has(firstWord.text)) {
			if (!silent) this.#reportDirective(firstWord);
			return 'directive';
		}
		if (firstWord?.text.startsWith('@') && !this.hasStarted) {
			this.#rejectMatcher(firstWord);
			this.#hasRejectedWord = false;
			return 'directive';
		}
		this.hasStarted = true;
		for (const word of words) this.#addWord(word);
		return 'address';
	}

	#addWord(word: ParsedWord): void {
		let { text } = word;
		if (text.startsWith('@')) {
			this.#rejectMatcher(word);
			return;
		}
		if (text.endsWith('{')) {
			const message = `Site addresses cannot end with a curly brace: '${text}' - put a space between the token and the brace`;
			const withSpace = `${text.slice(0, -1)} {`;
			this.#reject('syntax/glued-brace', word, message, {
				label: `write \`${withSpace}\``,
				fix: isLiteral(word, text)
					? {
							safety: 'safe',
							edits: [{ span: { ...word.span, start: word.span.end - 1, end: word.span.end - 1 }, text: ' ' }],
						}
					: undefined,
			});
			return;
		}
		if (text === '') return;
		this.expectsAddress = text.endsWith(',');
		if (this.expectsAddress) {
			text = text.slice(0, -1);
			this.#lastCommaSpan = { ...word.span, start: word.span.end - 1 };
		}
		if (text.includes(',')) {
			const message = `Site addresses cannot contain a comma ',': '${text}' - put a space after the comma to separate site addresses`;
			this.#reject('syntax/comma-in-address', word, message, {
				fix: isLiteral(word, word.text)
					? { safety: 'safe', edits: [{ span: word.span, text: word.text.split(',').join(', ').trimEnd() }] }
					: undefined,
			});
			return;
		}
		if (text === '') return;
		if (this.#directives.has(text)) {
			this.#reportDirective(word);
			this.#hasRejectedWord = true;
			return;
		}
		this.#words.push(
			text === word.text ? word : { text, quote: word.quote, span: { ...word.span, end: word.span.end - 1 } },
		);
	}

	#rejectMatcher(word: Word): void {
		const message = `request matchers may not be defined globally, they must be in a site block; found ${word.text}`;
		this.#reject('syntax/matcher-outside-site', word, message, {
			hint: 'Move the definition into the site that uses it.',
		});
	}

	#reportDirective(word: Word): void {
		const placePrefix = this.#report.dialect === 'compatfile' ? `${fileAndLine(word.span)}: ` : '';
		this.#report.report({
			code: 'syntax/directive-outside-site',
			severity: 'error',
			message: `${placePrefix}parsed '${word.text}' as a site address, but it is a known directive; directives must appear in a site block`,
			span: word.span,
			label: 'outside of any site',
			hint: 'Write the address of a site first, and this between its braces.',
		});
	}

	#reject(code: string, word: Word, message: string, details: Parameters<typeof structureMistake>[4]): void {
		this.#hasRejectedWord = true;
		this.#report.report(structureMistake(this.#report.dialect, code, word.span, message, details));
	}

	/**
	 * Ends the addresses of a site, and prepares for the next site. `open` is the site's `{`; undefined if it has none. Returns the
	 * words of the addresses, and whether a word was rejected.
	 */
	finish(open: SourceSpan | undefined): { words: readonly Word[]; hasRejected: boolean } {
		if (this.expectsAddress && this.#lastCommaSpan) {
			const { dialect } = this.#report;
			const message = open
				? "Expected another address but had '{' - check for extra comma"
				: 'unexpected EOF: another address is expected after the comma';
			this.#report.report(
				structureMistake(dialect, 'syntax/extra-comma', this.#lastCommaSpan, message, {
					label: 'an address is missing after this',
				}),
			);
		}
		const words = this.#words;
		const hasRejected = this.#hasRejectedWord;
		this.#words = [];
		this.#hasRejectedWord = false;
		this.hasStarted = false;
		this.expectsAddress = false;
		return { words, hasRejected };
	}
}

/** Reports whether a word is written literally in the file, rather than inserted from the environment or by expansion. */
function isLiteral({ span }: ParsedWord, text: string): boolean {
	return span.end - span.start === text.length && span.source.text.startsWith(text, span.start);
}

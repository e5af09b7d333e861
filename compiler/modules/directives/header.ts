/** Lowers `header` and `request_header`. */

import type { TextEdit } from '../../diagnostics/diagnostic.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { lowerResponseMatcher, type ResponseMatcher } from '../matchers/response-matcher.ts';
import { type HeaderEdits, lowerHeaderEdit } from '../words/header-edits.ts';
import type { EditHeadersStep } from './edit-headers.ts';

const HEADER_USAGE = 'header [matcher] [+|-|?|>]<field> [<value>|<regexp> [<replacement>]] [{ … }]';
const REQUEST_HEADER_USAGE = 'request_header [matcher] [+|-]<field> [<value>|<regexp> [<replacement>]]';

/** `header`: edits header fields of the response. */
export const header = handlerDirective<EditHeadersStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['header'], compatfile: ['header'] },
	usage: HEADER_USAGE,
	summary: 'Edits header fields of the response.',
	documentation: [
		'| Line | Effect |',
		'| --- | --- |',
		'| `FIELD VALUE` | sets the field |',
		'| `+FIELD VALUE` | adds a value |',
		'| `-FIELD` | removes it; `-X-*`, `-*-Id` and `-*` remove several or all |',
		'| `?FIELD VALUE` | sets it if the response lacks it |',
		'| `>FIELD VALUE` | sets it after later handlers have answered |',
		// biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a group's name in a replacement
		'| `FIELD REGEXP REPLACEMENT` | replaces in every value; `$1` and `${name}` insert groups; `*` is every field |',
		'',
		"A single edit goes on the directive's line, several in its block. Within one `header`, fields are added, set, removed and replaced",
		'in this order. Edits are made before later directives run, which may overwrite them; `defer` in the block, `-FIELD`,',
		'`?FIELD`, `>FIELD` and `match` make them when the response is ready instead, and not at all if a directive fails: repeat such',
		'a `header` in `handle_errors`. `match status 404` or `match header FIELD VALUE` limits them to some responses.',
		'',
		'Newlines in placeholder values become spaces.',
		'',
		'```',
		'header {',
		'	Strict-Transport-Security "max-age=31536000"',
		'	-Server',
		'	?Cache-Control "max-age=60"',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 90, sortsStepsApart: true },
	lower: ({ line, args }, cx) => {
		const draft = new ResponseEditsDraft(cx);
		if (args.length > 0) draft.addEdit(args, line, HEADER_USAGE);
		else if (!line.block && cx.dialect === 'compatfile') {
			cx.problem('warning', 'header/no-field', line.span, 'This `header` names no field and does nothing.', {
				hint: `Usage: ${HEADER_USAGE}`,
			});
		} else if (!line.block) cx.count(line, args, 1, 3, HEADER_USAGE);
		for (const innerLine of line.block?.lines ?? []) {
			const [word, ...words] = innerLine.words;
			if (word!.text === 'defer' && word!.quote === 'none') {
				cx.count(innerLine, words, 0, 0, 'defer');
				draft.deferred = true;
			} else if (word!.text === 'match' && word!.quote === 'none') {
				draft.match = lowerResponseMatcher(words, innerLine.block, innerLine, cx) ?? draft.match;
			} else if (args.length > 0) {
				const message = 'cannot specify headers in both arguments and block';
				cx.problem('error', 'header/arguments-and-block', innerLine.span, message);
			} else {
				cx.noBlock(innerLine);
				draft.addEdit(innerLine.words, innerLine, '[+|-|?|>]<field> [<value>|<regexp> [<replacement>]]');
			}
		}
		return draft.toSteps().map(step => cx.origin(step, line.span));
	},
	schema: { properties: {} },
	compile: undefined,
});

/**
 * Warns of a value such as `max-age=31536000; includeSubDomains` without quotes. Its two words are parsed as a regular expression
 * and a replacement, so they do not set the field.
 */
function warnOfValueWithoutQuotes([, find, replacement, ...others]: readonly Word[], cx: LowerContext): void {
	if (!find || !replacement || others.length > 0) return;
	if (find.quote !== 'none' || replacement.quote !== 'none' || !find.text.endsWith(';')) return;
	const span = { ...find.span, end: replacement.span.end };
	const { source } = span;
	const isQuotable = replacement.span.source === source && !source.text.slice(span.start, span.end).includes('"');
	const insertQuote = (offset: number): TextEdit => ({ span: { source, start: offset, end: offset }, text: '"' });
	cx.problem(
		'warning',
		'header/value-without-quotes',
		span,
		'These words replace a text in the field, and do not set it.',
		{
			hint: `Put a value with spaces in quotes: "${find.text} ${replacement.text}".`,
			...(isQuotable
				? { fix: { safety: 'unsafe', edits: [insertQuote(span.start), insertQuote(span.end)] } as const }
				: {}),
		},
	);
}

/** Collects the edits in the lines of one `header`. */
class ResponseEditsDraft {
	deferred = false;
	match: ResponseMatcher | undefined;
	readonly #cx: LowerContext;
	#edits: HeaderEdits = {};
	#defaultEdits: HeaderEdits = {};

	constructor(cx: LowerContext) {
		this.#cx = cx;
	}

	addEdit(words: readonly Word[], line: Line, usage: string): void {
		if (!this.#cx.count(line, words, 1, 3, usage)) return;
		warnOfValueWithoutQuotes(words, this.#cx);
		const fieldWord = words[0]!;
		if (fieldWord.text.startsWith('?')) {
			this.#defaultEdits = lowerHeaderEdit(words, this.#defaultEdits, 'response', this.#cx);
			return;
		}
		if (fieldWord.text.startsWith('-')) this.deferred = true;
		let editWords = words;
		if (fieldWord.text.startsWith('>')) {
			this.deferred = true;
			editWords = [{ ...fieldWord, text: fieldWord.text.slice(1) }, ...words.slice(1)];
		}
		this.#edits = lowerHeaderEdit(editWords, this.#edits, 'response', this.#cx);
	}

	/** Returns the lowered steps. `?` lines get a step of their own: they are always deferred, and the other edits need not be. */
	toSteps(): EditHeadersStep[] {
		const match = this.match ? { match: this.match } : {};
		const steps: EditHeadersStep[] = [];
		if (Object.keys(this.#edits).length > 0) {
			const deferred = this.deferred || this.match ? { deferred: true } : {};
			steps.push({ handler: 'edit_headers', response: { ...this.#edits, ...deferred, ...match } });
		}
		if (this.#defaultEdits.default)
			steps.push({ handler: 'edit_headers', response: { ...this.#defaultEdits, ...match } });
		return steps;
	}
}

/** `request_header`: edits header fields of the request. */
export const requestHeader = handlerDirective<EditHeadersStep>({
	kind: 'handler',
	id: '',
	names: { configfile: ['request_header'], compatfile: ['request_header'] },
	usage: REQUEST_HEADER_USAGE,
	summary: 'Edits a header field of the request.',
	documentation: [
		'Like `header`, but for the request: later matchers, handlers and upstreams see the edited fields. Setting `Host` changes',
		`the request's host.`,
		'',
		'```',
		'request_header X-Request-Id {uuid}',
		'request_header -Cookie',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 200 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 3, REQUEST_HEADER_USAGE)) return undefined;
		const request = lowerHeaderEdit(args, undefined, 'request', cx);
		return cx.origin<EditHeadersStep>({ handler: 'edit_headers', request }, line.span);
	},
	schema: { properties: {} },
	compile: undefined,
});

/** `redir`: redirects the client. */

import { compileFieldValue } from '../../codegen/placeholders/field-template.ts';
import type { Fix, FixSafety, Severity } from '../../diagnostics/diagnostic.ts';
import { suggestName } from '../../diagnostics/suggest.ts';
import type { Step } from '../../document/document.ts';
import type { Handler } from '../../exchange/handler.ts';
import { escapeHtml } from '../../exchange/html-text.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { compileStepStatus, STEP_STATUS_SCHEMA } from '../words/step-status.ts';

interface RedirectStep extends Step {
	readonly handler: 'redirect';
	readonly to: string;
	readonly status?: number | string;
	readonly html?: boolean;
}

const DEFAULT_REDIRECT_STATUS = 302;
const USAGE = 'redir [matcher] <to> [<status> | temporary | permanent | html]';

/** Syntax: `redir [matcher] <to> [<status>]`. */
export const redir = handlerDirective<RedirectStep>({
	kind: 'handler',
	id: 'redirect',
	observedFields: 'all',
	names: { configfile: ['redir'], compatfile: ['redir'] },
	usage: USAGE,
	summary: 'Redirects the client.',
	documentation: [
		'Answers with a `Location`. The default status is 302 (`temporary`); `permanent` is 301; any status from 300 to 399, or 401,',
		'is allowed, as is a placeholder. `html` answers with a page that redirects by itself, for clients that must not see a',
		'redirect status.',
		'',
		'```',
		'redir https://example.com{uri} permanent',
		'redir /old /new 308',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	redirectsTo: ({ to, html }) => ({ to, isByPage: html === true }),
	order: { rank: 130 },
	lower: ({ line, args }, cx) => {
		if (line.block) {
			cx.problem('error', 'directive/unexpected-block', line.block.open, '`redir` takes no block.', {
				hint: 'Write a line for each target; use a named matcher for the condition: `redir @name /to 308`.',
			});
		}
		const matcherWord = line.words.length > args.length + 1 ? line.words[1] : undefined;
		if (args.length === 0 && matcherWord && cx.dialect === 'configfile') return reportNoTarget(matcherWord, cx);
		if (!cx.count(line, args, 1, 2, USAGE)) return undefined;
		const [targetWord, statusWord] = args as readonly [Word, Word | undefined];
		if (looksLikeStatus(targetWord) && reportStatus(targetWord, statusWord, matcherWord, cx) === 'error')
			return undefined;
		const step = {
			handler: 'redirect',
			to: cx.template(targetWord),
			...(statusWord ? lowerStatusWord(statusWord, cx) : {}),
		} as RedirectStep;
		return cx.origin(step, line.span, { to: targetWord.span, ...(statusWord ? { status: statusWord.span } : {}) });
	},
	schema: {
		properties: {
			to: { type: 'string', minLength: 1, secret: 'url', description: 'Value of `Location`, with placeholders.' },
			status: {
				...STEP_STATUS_SCHEMA,
				default: 302,
				description: 'Status, or a text with placeholders that evaluates to one. Default 302.',
			},
			html: { type: 'boolean', default: false, description: 'Answers 200 with a page that redirects by itself.' },
		},
		required: ['to'],
	},
	compile: (step, cx, next) => (step.html ? compileRedirectPage(step, cx) : compileRedirect(step, cx, next)),
});

/** Reports whether a word looks like a status, such as `301` in `redir 301 /new`. */
function looksLikeStatus({ text, quote }: Word): boolean {
	return quote === 'none' && /^(?:[1-5]\d\d|permanent|temporary|html)$/.test(text);
}

/**
 * Reports a status that is written where the target belongs, and returns the severity. It is only a warning in a Compatfile,
 * because Caddy redirects to the status as if it were a URL.
 */
function reportStatus(
	misplacedWord: Word,
	nextWord: Word | undefined,
	matcherWord: Word | undefined,
	cx: LowerContext,
): Severity {
	const severity = cx.dialect === 'compatfile' ? 'warning' : 'error';
	const subject = `\`${misplacedWord.text}\` ${/^\d/.test(misplacedWord.text) ? 'is a status' : 'is a redirect word'}`;
	// A number such as 404 is not a redirect status, so swapping the two words would not help.
	const isUsableStatus = !/^\d/.test(misplacedWord.text) || isRedirectStatus(Number(misplacedWord.text));
	const report = (message: string, hint: string, fix?: Fix): void =>
		cx.problem(severity, 'redirect/target-is-status', misplacedWord.span, `${subject}${message}`, {
			hint: isUsableStatus ? hint : `Usage: ${USAGE}`,
			fix: isUsableStatus ? fix : undefined,
		});
	if (nextWord !== undefined && !looksLikeStatus(nextWord)) {
		// Without a matcher, a path as the first argument would be parsed as the matcher.
		const targetText = matcherWord === undefined && looksLikePath(nextWord) ? `* ${nextWord.text}` : nextWord.text;
		const hint = `Write the target first: \`redir ${matcherWord ? `${matcherWord.text} ` : ''}${targetText} ${misplacedWord.text}\`.`;
		report(
			', but comes before the target.',
			hint,
			createSwapFix(misplacedWord, nextWord, targetText, severity === 'error' ? 'safe' : 'unsafe'),
		);
	} else if (nextWord === undefined && matcherWord && looksLikePath(matcherWord)) {
		report(
			`, but is in the place of the target: \`${matcherWord.text}\` is the matcher here.`,
			`To redirect every request there, write \`redir * ${matcherWord.text} ${misplacedWord.text}\`.`,
			createMatcherFix(matcherWord),
		);
	} else report(', but there is no target.', `Usage: ${USAGE}`);
	return severity;
}

/** Reports a `redir` without a target: its only argument is a path and was therefore parsed as the matcher. */
function reportNoTarget(matcherWord: Word, cx: LowerContext): undefined {
	const matcherHint = looksLikePath(matcherWord)
		? `To redirect every request there, write \`redir * ${matcherWord.text}\`.`
		: undefined;
	cx.problem(
		'error',
		'redirect/no-target',
		matcherWord.span,
		`\`${matcherWord.text}\` is the matcher here, and the target is missing.`,
		{
			hint: matcherHint ?? `Usage: ${USAGE}`,
			fix: matcherHint === undefined ? undefined : createMatcherFix(matcherWord),
		},
	);
	return undefined;
}

function looksLikePath({ text, quote }: Word): boolean {
	return quote === 'none' && text.startsWith('/');
}

/** Returns the edit that inserts the matcher `*` before a path, making the path an argument. */
function createMatcherFix(pathWord: Word): Fix | undefined {
	if (!isVerbatim(pathWord)) return undefined;
	return { safety: 'unsafe', edits: [{ span: { ...pathWord.span, end: pathWord.span.start }, text: '* ' }] };
}

function createSwapFix(statusWord: Word, targetWord: Word, targetText: string, safety: FixSafety): Fix | undefined {
	if (!isVerbatim(statusWord) || !isVerbatim(targetWord)) return undefined;
	const edits = [
		{ span: statusWord.span, text: targetText },
		{ span: targetWord.span, text: statusWord.text },
	];
	return { safety, edits };
}

/**
 * Reports whether a word is written in the file exactly like its text, without an expanded environment variable or snippet
 * argument.
 */
function isVerbatim({ text, span: { source, start, end } }: Word): boolean {
	return source.text.slice(start, end) === text;
}

function lowerStatusWord(word: Word, cx: LowerContext): { status?: number | string; html?: true } {
	switch (word.text) {
		case 'temporary':
			return {};
		case 'permanent':
			return { status: 301 };
		case 'html':
			return { html: true };
	}
	if (word.text.includes('{')) return { status: cx.template(word) };
	const hint = 'Give a number from 300 to 399 or 401, or one of: temporary, permanent, html.';
	if (!/^-?\d+$/.test(word.text)) {
		const compatibleMessage = `Not a supported redir code type or not valid integer: '${word.text}'`;
		const message = cx.dialect === 'compatfile' ? compatibleMessage : `\`${word.text}\` is not a redirect status.`;
		cx.problem('error', 'redirect/unknown-status', word.span, message, {
			...suggestName(word, nearestStatusWord(word.text)),
			hint,
		});
		return {};
	}
	const status = Number(word.text);
	if (!isRedirectStatus(status)) {
		const compatibleMessage = `Redir code not in the 3xx range or 401: '${word.text}'`;
		const message = cx.dialect === 'compatfile' ? compatibleMessage : `${word.text} is not a redirect status.`;
		cx.problem('error', 'redirect/status-out-of-range', word.span, message, { hint });
		return {};
	}
	return { status };
}

function isRedirectStatus(status: number): boolean {
	return status === 401 || (status >= 300 && status <= 399);
}

/** Returns the status word that was probably meant: the one with the same first three letters. */
function nearestStatusWord(text: string): string | undefined {
	return ['temporary', 'permanent', 'html'].find(candidate => candidate.startsWith(text.slice(0, 3).toLowerCase()));
}

function compileRedirect(step: RedirectStep, cx: CompileContext, _next: Handler): Handler {
	const status = compileStepStatus(step.status ?? DEFAULT_REDIRECT_STATUS, cx, () => DEFAULT_REDIRECT_STATUS);
	const targetTemplate = compileFieldValue(step.to, cx, 'empty');
	const { stepNumber } = cx;
	return x => {
		const { response } = x;
		response.status = typeof status === 'number' ? status : status(x);
		response.headers.set('Location', targetTemplate.constant ?? targetTemplate.render(x));
		response.body = null;
		x.markAnswered('redirect', stepNumber);
	};
}

function compileRedirectPage(step: RedirectStep, cx: CompileContext): Handler {
	// Only the literal text is escaped here; the template escapes the values of placeholders.
	const htmlTemplate = step.to.replace(/\{[^{}]*\}|[^{}]+/g, piece =>
		piece.startsWith('{') ? piece : escapeHtml(piece),
	);
	const targetTemplate = cx.template(htmlTemplate, 'empty', () => escapeHtml);
	const { stepNumber } = cx;
	return x => {
		const { response } = x;
		response.status = 200;
		response.headers.set('Content-Type', 'text/html; charset=utf-8');
		response.body = renderRedirectPage(targetTemplate.constant ?? targetTemplate.render(x));
		x.markAnswered('redirect', stepNumber);
	};
}

/** Returns the redirect page. Its script reads the address from the link, so that no request data becomes part of the script. */
function renderRedirectPage(target: string): string {
	return `<!DOCTYPE html>
<html>
	<head>
		<title>Redirecting…</title>
		<meta http-equiv="refresh" content="0; URL='${target}'">
	</head>
	<body>
		Redirecting to <a href="${target}">${target}</a>…
		<script>window.location.replace(document.links[0].href);</script>
	</body>
</html>
`;
}

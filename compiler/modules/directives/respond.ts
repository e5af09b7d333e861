/** `respond`: answers with a fixed response. */

import type { Step } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext, Template } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import { compileStepStatus, failingStatusStep, lowerStepStatus, STEP_STATUS_SCHEMA } from '../words/step-status.ts';
import { markData, splitMarked, type TemplatePage, templatePageOf } from './templates/page-source.ts';

interface RespondStep extends Step {
	readonly handler: 'respond';
	readonly status?: number | string;
	readonly body?: string;
	readonly close?: boolean;
}

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';
const EARLY_HINTS_STATUS = 103;

/** Syntax: `respond [matcher] <status> | <body> [<status>] [{ body <text>; close }]`. */
export const respond = handlerDirective<RespondStep>({
	kind: 'handler',
	id: 'respond',
	observedFields: ['status', 'body'],
	names: { configfile: ['respond'], compatfile: ['respond'] },
	usage: 'respond [matcher] <status> | <body> [<status>] [{ body <text>; close }]',
	summary: 'Answers with a fixed status and body.',
	documentation: [
		'A single argument of three digits is the status, any other is the body. The default status is 200; in error routes it is',
		'the status of the error. Status and body may contain placeholders; unknown ones stay in the body as written.',
		'',
		'A body that is a JSON object or array is sent as `application/json`, any other as `text/plain; charset=utf-8`,',
		'unless an earlier `header` has set `Content-Type`. `close` closes the connection after the response. Status 103',
		'sends the header fields set so far as Early Hints, and the request continues.',
		'',
		'```',
		'respond /health "ok"',
		'respond /gone 410',
		'respond "Hello, {http.request.remote.host}!" 200',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	makesPages: true,
	order: { rank: 320 },
	lower: ({ line, args }, cx) => {
		const fields: { status?: number | string; body?: string; close?: boolean } = {};
		const fieldSpans: { status?: Word['span']; body?: Word['span'] } = {};
		cx.count(line, args, line.block && cx.dialect === 'configfile' ? 0 : 1, 2, respond.usage);
		const [firstWord, secondWord] = args;
		if (firstWord && !secondWord && /^\d{3}$/.test(firstWord.text)) {
			fields.status = lowerStepStatus(firstWord, cx);
			fieldSpans.status = firstWord.span;
		} else if (firstWord) {
			fields.body = cx.template(firstWord);
			fieldSpans.body = firstWord.span;
		}
		const failStep = secondWord && failingStatusStep(secondWord, cx);
		if (failStep) return cx.origin(failStep as unknown as RespondStep, line.span);
		if (secondWord) {
			fields.status = lowerStepStatus(secondWord, cx);
			fieldSpans.status = secondWord.span;
		}
		cx.subdirectives(
			line.block,
			{
				body: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'body <text>')) return;
					if (fields.body !== undefined) reportTwice('body', innerLine.words[0]!, cx);
					fields.body = cx.template(words[0]!);
					fieldSpans.body = words[0]!.span;
				},
				close: (words, innerLine) => {
					cx.count(innerLine, words, 0, 0, 'close');
					if (fields.close) reportTwice('close', innerLine.words[0]!, cx);
					fields.close = true;
				},
			},
			'respond',
		);
		return cx.origin({ handler: 'respond', ...fields } as RespondStep, line.span, fieldSpans);
	},
	schema: {
		properties: {
			status: {
				...STEP_STATUS_SCHEMA,
				description: 'Status, or a text with placeholders that evaluates to one. Default 200.',
			},
			body: { type: 'string', description: 'Body, with placeholders.' },
			close: { type: 'boolean', default: false, description: 'Closes the connection after the response.' },
		},
	},
	compile: compileRespond,
});

function reportTwice(name: string, word: Word, cx: LowerContext): void {
	cx.problem('error', 'respond/given-twice', word.span, `${name} already specified`);
}

function compileRespond(step: RespondStep, cx: CompileContext, next: Handler): Handler {
	const status = compileStepStatus(step.status, cx, x => x.error?.status ?? 200);
	if (typeof status === 'number' && status < 200 && status !== EARLY_HINTS_STATUS) {
		return cx.refuse(
			`Status ${status} does not end a response: use a status of 200 or above, or 103.`,
			'status/not-final',
		);
	}
	const bodyTemplate = cx.template(step.body ?? '', 'keep');
	const closesConnection = step.close === true;
	const { stepNumber } = cx;
	// Used only for pages that `templates` executes, because `templates` must distinguish inserted values from template text.
	let markedTemplate: Template | undefined;
	const renderPage = (x: Exchange, page: TemplatePage): string => {
		markedTemplate ??= cx.template(step.body ?? '', 'keep', () => markData);
		const { source, text } = splitMarked(markedTemplate.render(x));
		page.source = source;
		page.body = text;
		return text;
	};
	const constantHandler =
		typeof status === 'number' && status !== EARLY_HINTS_STATUS && bodyTemplate.constant !== undefined
			? constantResponseHandler(status, bodyTemplate.constant, closesConnection, cx.stepNumber)
			: undefined;
	if (constantHandler) return constantHandler;
	return x => {
		const statusCode = typeof status === 'number' ? status : status(x);
		if (statusCode === EARLY_HINTS_STATUS) {
			x.sendInterim(statusCode, x.response.headers.clone());
			return next(x);
		}
		if (bodyTemplate.constant !== undefined)
			return setResponse(x, statusCode, bodyTemplate.constant, closesConnection, stepNumber);
		const templatePage = templatePageOf(x);
		setResponse(
			x,
			statusCode,
			templatePage ? renderPage(x, templatePage) : bodyTemplate.render(x),
			closesConnection,
			stepNumber,
		);
	};
}

/** Returns a handler for a constant response. For each request, the handler only sets a status, a body and a header field. */
function constantResponseHandler(
	status: number,
	bodyText: string,
	closesConnection: boolean,
	stepNumber: number,
): Handler {
	const type = guessContentType(bodyText);
	const body = bodyText === '' ? null : bodyText;
	return x => {
		const { response } = x;
		response.status = status;
		response.body = body;
		if (type !== undefined && (response.headers.size === 0 || !response.headers.has('content-type'))) {
			response.headers.add('Content-Type', type);
		}
		if (closesConnection) response.headers.set('Connection', 'close');
		x.markAnswered('respond', stepNumber);
	};
}

function setResponse(
	x: Exchange,
	status: number,
	bodyText: string,
	closesConnection: boolean,
	stepNumber: number,
): void {
	const { response } = x;
	response.status = status;
	response.body = bodyText === '' ? null : bodyText;
	if (bodyText !== '' && !response.headers.has('content-type'))
		response.headers.add('Content-Type', guessContentType(bodyText)!);
	if (closesConnection) response.headers.set('Connection', 'close');
	x.markAnswered('respond', stepNumber);
}

/**
 * Returns the `Content-Type` of a body: JSON for non-empty objects and arrays, otherwise plain text; undefined for an empty body.
 */
function guessContentType(body: string): string | undefined {
	if (body === '') return undefined;
	const text = body.trim();
	const firstCharacter = text[0];
	if (text.length <= 2 || (firstCharacter !== '{' && firstCharacter !== '[')) return TEXT_TYPE;
	try {
		JSON.parse(text);
		return JSON_TYPE;
	} catch {
		return TEXT_TYPE;
	}
}

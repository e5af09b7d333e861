/** Lowers and compiles the `status` of a step: a number, or a string with placeholders that evaluates to a status. */

import type { Schema } from '../../document/schema-type.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { HttpError } from '../../exchange/http-error.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { LowerContext } from '../contract/lower-context.ts';

export const STEP_STATUS_SCHEMA: Schema = {
	anyOf: [
		{ type: 'integer', minimum: 100, maximum: 599 },
		{ type: 'string', minLength: 1 },
	],
};

/**
 * Reports a word in a Compatfile that is not a status, and returns the step that Caddy generates in this case,
 * which fails every request with 500. Returns undefined for all other words.
 */
export function failingStatusStep(word: Word, cx: LowerContext): { handler: 'fail'; message: string } | undefined {
	if (cx.dialect !== 'compatfile' || word.text.includes('{') || /^\d+$/.test(word.text)) return undefined;
	const message = `\`${word.text}\` is not a status.`;
	cx.problem('warning', 'value/not-a-status', word.span, message, {
		label: 'every request will fail with 500',
		hint: 'The body comes first, then the status.',
	});
	return { handler: 'fail', message };
}

/** Lowers a status: to a string if it contains a placeholder, otherwise to a number. Reports anything else as a mistake. */
export function lowerStepStatus(word: Word, cx: LowerContext): number | string {
	if (word.text.includes('{')) return cx.template(word);
	return cx.status(word) ?? 500;
}

/**
 * Compiles a status. If a string does not evaluate to a status (100 to 599) for a request, HttpError 500 is thrown.
 * `defaultStatus` supplies the status if the step has none.
 */
export function compileStepStatus(
	status: number | string | undefined,
	cx: CompileContext,
	defaultStatus: (x: Exchange) => number,
): number | ((x: Exchange) => number) {
	if (status === undefined) return defaultStatus;
	if (typeof status === 'number') return status;
	const template = cx.template(status, 'empty');
	if (template.constant !== undefined) {
		const constant = parseStatus(template.constant);
		if (constant !== undefined) return constant;
		// Only a literal is rejected: the value of an environment variable may be valid on the machine that runs the server.
		if (!status.includes('{')) return cx.refuse(`\`${status}\` is not a status.`, 'status/invalid');
	}
	return x => {
		const statusText = template.render(x);
		const status = parseStatus(statusText);
		if (status === undefined) throw new HttpError(500, `\`${statusText}\` is not a status.`);
		return status;
	};
}

function parseStatus(text: string): number | undefined {
	return /^[1-5]\d\d$/.test(text) ? Number(text) : undefined;
}

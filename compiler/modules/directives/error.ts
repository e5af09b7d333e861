/** `error`: raises an error for the error routes to handle. */
import type { Step } from '../../document/document.ts';
import { HttpError } from '../../exchange/http-error.ts';
import type { Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import { compileStepStatus, failingStatusStep, lowerStepStatus, STEP_STATUS_SCHEMA } from '../words/step-status.ts';

interface FailStep extends Step {
	readonly handler: 'fail';
	readonly status?: number | string;
	readonly message?: string;
}

const DEFAULT_ERROR_STATUS = 500;
const USAGE = 'error [matcher] <status> | <message> [<status>] [{ message <text> }]';

/** Syntax: `error [matcher] <status> | <message> [<status>]`. */
export const error = handlerDirective<FailStep>({
	kind: 'handler',
	id: 'fail',
	observedFields: 'all',
	names: { configfile: ['error'], compatfile: ['error'] },
	usage: USAGE,
	summary: 'Raises an error.',
	documentation: [
		'Ends the request with an error, which `handle_errors` can answer; without it, the client gets the status and an empty body.',
		'A single argument of three digits is the status, any other is the message. The default status is 500.',
		'',
		'```',
		'error /private/* "Not for you" 403',
		'handle_errors 403 {',
		'	respond "{err.message}"',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	order: { rank: 300 },
	lower: ({ line, args }, cx) => {
		const fields: { status?: number | string; message?: string } = {};
		cx.count(line, args, 1, 2, USAGE);
		const [firstWord, secondWord] = args as readonly (Word | undefined)[];
		if (firstWord && !secondWord && /^\d{3}$/.test(firstWord.text)) fields.status = lowerStepStatus(firstWord, cx);
		else if (firstWord) fields.message = cx.template(firstWord);
		const failStep = secondWord && failingStatusStep(secondWord, cx);
		if (failStep) return cx.origin(failStep as FailStep, line.span);
		if (secondWord) fields.status = lowerStepStatus(secondWord, cx);
		cx.subdirectives(
			line.block,
			{
				message: (words, innerLine) => {
					if (!cx.count(innerLine, words, 1, 1, 'message <text>')) return;
					if (fields.message !== undefined) {
						cx.problem('error', 'error/given-twice', innerLine.words[0]!.span, 'message already specified');
					}
					fields.message = cx.template(words[0]!);
				},
			},
			'error',
		);
		return cx.origin({ handler: 'fail', ...fields } as FailStep, line.span);
	},
	schema: {
		properties: {
			status: {
				...STEP_STATUS_SCHEMA,
				default: 500,
				description: 'Status, or a text with placeholders that evaluates to one. Default 500.',
			},
			message: { type: 'string', description: 'Message, with placeholders; for logs and error routes.' },
		},
	},
	compile: (step, cx) => {
		const status = compileStepStatus(step.status, cx, () => DEFAULT_ERROR_STATUS);
		const message = cx.template(step.message ?? '', 'keep');
		const { stepNumber } = cx;
		return x => {
			x.markAnswered('fail', stepNumber);
			throw new HttpError(typeof status === 'number' ? status : status(x), message.render(x));
		};
	},
});

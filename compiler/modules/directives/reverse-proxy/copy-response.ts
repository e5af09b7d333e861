/** `copy_response` and `copy_response_headers`: copy the upstream's response in routes of `handle_response`. */
import type { Step } from '../../../document/document.ts';
import type { Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import { compileStepStatus, lowerStepStatus, STEP_STATUS_SCHEMA } from '../../words/step-status.ts';
import { requireHandledResponse } from './handled-response.ts';

interface CopyResponseStep extends Step {
	readonly handler: 'copy_upstream_response';
	readonly status?: number | string;
}

interface CopyHeadersStep extends Step {
	readonly handler: 'copy_upstream_headers';
	readonly include?: readonly string[];
	readonly exclude?: readonly string[];
}

const RESPONSE_USAGE = 'copy_response [matcher] [<status>] [{ status <status> }]';
const HEADERS_USAGE = 'copy_response_headers [matcher] { include <field>… | exclude <field>… }';

/** Syntax: `copy_response [matcher] [<status>]`. */
export const copyResponse = handlerDirective<CopyResponseStep>({
	kind: 'handler',
	id: 'copy_upstream_response',
	observedFields: 'all',
	names: { configfile: ['copy_response'], compatfile: ['copy_response'] },
	usage: RESPONSE_USAGE,
	summary: "Answers with the upstream's response that `handle_response` intercepted.",
	documentation: [
		`Copies status, fields and body; a status given here replaces the upstream's. It works only in routes of`,
		'`handle_response` in a `reverse_proxy`; anywhere else the request fails with status 500.',
		'',
		'```',
		'reverse_proxy 127.0.0.1:9000 {',
		'	@missing status 404',
		'	handle_response @missing {',
		'		header X-Missing yes',
		'		copy_response 410',
		'	}',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	makesPages: true,
	order: { rank: 310 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 1, RESPONSE_USAGE);
		let status = args[0] && lowerStepStatus(args[0], cx);
		cx.subdirectives(
			line.block,
			{
				status: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'status <status>')) status = lowerStepStatus(words[0]!, cx);
				},
			},
			'copy_response',
		);
		const statusField = status === undefined ? {} : { status };
		return cx.origin<CopyResponseStep>({ handler: 'copy_upstream_response', ...statusField }, line.span);
	},
	schema: {
		properties: { status: { ...STEP_STATUS_SCHEMA, description: "Status to send; default the upstream's." } },
	},
	compile: (step, cx) => {
		const status = step.status === undefined ? undefined : compileStepStatus(step.status, cx, () => 500);
		return x => requireHandledResponse(x, 'copy_response').copy(x, typeof status === 'function' ? status(x) : status);
	},
});

/** Syntax: `copy_response_headers [matcher] { include <field>… | exclude <field>… }`. */
export const copyResponseHeaders = handlerDirective<CopyHeadersStep>({
	kind: 'handler',
	id: 'copy_upstream_headers',
	observedFields: 'all',
	names: { configfile: ['copy_response_headers'], compatfile: ['copy_response_headers'] },
	usage: HEADERS_USAGE,
	summary: "Copies response fields from the upstream's response that `handle_response` intercepted.",
	documentation: [
		'Copies all fields, those in `include`, or all except those in `exclude`. It works only in routes of',
		'`handle_response` in a `reverse_proxy`; anywhere else the request fails with status 500.',
		'',
		'```',
		'reverse_proxy 127.0.0.1:9000 {',
		'	handle_response {',
		'		copy_response_headers {',
		'			include Cache-Control Expires',
		'		}',
		'		respond "{rp.status_code}"',
		'	}',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 100 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, HEADERS_USAGE);
		const fieldLists: { include?: string[]; exclude?: string[] } = {};
		const listHandler = (list: 'include' | 'exclude') => (words: readonly Word[], innerLine: typeof line) => {
			if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, `${list} <field>…`)) return;
			fieldLists[list] = [...(fieldLists[list] ?? []), ...words.map(({ text }) => text)];
		};
		cx.subdirectives(
			line.block,
			{ include: listHandler('include'), exclude: listHandler('exclude') },
			'copy_response_headers',
		);
		if (fieldLists.include && fieldLists.exclude) {
			const message = "cannot define both 'exclude' and 'include' lists at the same time";
			cx.problem('error', 'responses/two-lists', line.words[0]!.span, message);
		}
		return cx.origin<CopyHeadersStep>({ handler: 'copy_upstream_headers', ...fieldLists }, line.span);
	},
	schema: {
		properties: {
			include: { type: 'array', items: { type: 'string' }, description: 'Fields to copy; default all.' },
			exclude: { type: 'array', items: { type: 'string' }, description: 'Fields not to copy.' },
		},
	},
	compile: (step, cx, next) => {
		const { include, exclude } = step;
		if (include && exclude)
			cx.refuse("cannot define both 'exclude' and 'include' lists at the same time", 'responses/two-lists');
		const fieldNames = new Set((include ?? exclude ?? []).map(name => name.toLowerCase()));
		const isCopied = include ? (name: string) => fieldNames.has(name) : (name: string) => !fieldNames.has(name);
		return x => {
			requireHandledResponse(x, 'copy_response_headers').copyFields(x, isCopied);
			return next(x);
		};
	},
});

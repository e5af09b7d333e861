/** Executes templates with the builtins and sprig's functions, for the tests of the template language. */
import { BUILTINS } from '../../../../compiler/modules/templates/builtins.ts';
import { PatternCache } from '../../../../compiler/modules/templates/pattern-cache.ts';
import { ExecutionBudget } from '../../../../compiler/modules/templates/run.ts';
import { REFUSED_SPRIG, SPRIG_FUNCTIONS } from '../../../../compiler/modules/templates/sprig/index.ts';
import {
	compileTextTemplate,
	DEFAULT_DELIMITERS,
	executeTextTemplate,
} from '../../../../compiler/modules/templates/text-template.ts';
import type { Value } from '../../../../compiler/modules/templates/value.ts';

// Times without a time zone use the machine's zone.
process.env.TZ = 'UTC';

const FUNCTIONS = new Map(Object.entries({ ...SPRIG_FUNCTIONS, ...BUILTINS }));

/** The time that the template function `now` returns: 2023-11-14 22:13:20.123 UTC. */
export const TEMPLATE_NOW_MS = 1_700_000_000_123;

/** The value of the dot (`.`) in the tests. */
export const TEMPLATE_DATA: Value = new Map<string, Value>([
	['text', 'x<y'],
	['number', 7n],
	['float', 1.5],
	['yes', true],
	['no', false],
	['none', null],
	['list', ['a', 'b', 'c']],
	['empty', []],
	[
		'map',
		new Map<string, Value>([
			['b', 2n],
			['a', 1n],
		]),
	],
	['constructor', 'own'],
]);

/** Returns the output of a template. Throws TemplateFailure. */
export function render(text: string, data: Value = TEMPLATE_DATA): string {
	const patterns = new PatternCache();
	const language = { delimiters: DEFAULT_DELIMITERS, functions: FUNCTIONS, refusedFunctions: REFUSED_SPRIG };
	return executeTextTemplate(compileTextTemplate({ text }, language, 't.html'), {
		name: 't.html',
		data,
		budget: new ExecutionBudget(),
		deps: { now: () => TEMPLATE_NOW_MS, regexp: source => patterns.get(source), hostState: undefined },
	});
}

/** Returns the message with which a template fails. */
export function templateFailureMessage(text: string): string {
	try {
		return `no failure, but ${render(text)}`;
	} catch (error) {
		return (error as Error).message;
	}
}

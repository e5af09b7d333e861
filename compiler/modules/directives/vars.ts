/** `vars`: sets variables of the request. */
import type { Step } from '../../document/document.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { Word } from '../../syntax/ast.ts';
import type { CompileContext, Template } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';
import type { VariableValue } from '../words/parse-scalar.ts';
import { parseScalar } from '../words/parse-scalar.ts';

/** The step to which `vars`, `root` and `fs` lower. */
export interface SetVariablesStep extends Step {
	readonly handler: 'set_variables';
	readonly variables: { readonly [name: string]: VariableValue };
}

const USAGE = 'vars [matcher] <name> <value> | { <name> <value>… }';

/** Syntax: `vars [matcher] <name> <value>`. */
export const vars = handlerDirective<SetVariablesStep>({
	kind: 'handler',
	id: 'set_variables',
	observedFields: 'all',
	names: { configfile: ['vars'], compatfile: ['vars'] },
	usage: USAGE,
	summary: 'Sets variables of the request.',
	documentation: [
		'Read a variable as `{vars.NAME}`. An unquoted value is a number or a boolean if it reads as one; a text may',
		'contain placeholders, which are evaluated when the directive runs.',
		'',
		'```',
		'vars tier gold',
		'vars {',
		'	limit 10',
		'	name "{host}"',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	setsRoot: ({ variables }) => variables.root !== undefined,
	rootOf: ({ variables: { root } }) => (typeof root === 'string' ? { text: root, pointer: '' } : undefined),
	writtenAs: ({ variables }) => (Object.hasOwn(variables, 'root') ? 'root' : undefined),
	order: { rank: 30, lastRunsFirst: true },
	lower: ({ line, args }, cx) => {
		const variables: { [name: string]: VariableValue } = {};
		if (args.length > 0 || !line.block) {
			if (cx.count(line, args, 2, 2, USAGE)) assignVariable(variables, args[0]!, args[1]!, cx);
		}
		for (const innerLine of line.block?.lines ?? []) {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, innerLine.words.slice(1), 1, 1, '<name> <value>'))
				assignVariable(variables, innerLine.words[0]!, innerLine.words[1]!, cx);
		}
		if (Object.keys(variables).length === 0) return undefined;
		return cx.origin<SetVariablesStep>({ handler: 'set_variables', variables }, line.span);
	},
	schema: {
		properties: {
			variables: {
				type: 'object',
				additionalProperties: { type: ['string', 'number', 'boolean'], secret: 'by-key' },
				description: 'Values by name. Texts may contain placeholders.',
			},
		},
		required: ['variables'],
	},
	compile: compileSetVariables,
});

function assignVariable(
	variables: { [nameWord: string]: VariableValue },
	name: Word,
	valueWord: Word,
	cx: LowerContext,
): void {
	const parsedValue = valueWord.quote === 'none' ? parseScalar(valueWord.text) : valueWord.text;
	const value = typeof parsedValue === 'string' ? cx.template(valueWord) : parsedValue;
	// The value is defined as a property, so that `__proto__` is a name like any other.
	Object.defineProperty(variables, cx.template(name), { value, enumerable: true, configurable: true, writable: true });
}

function compileSetVariables(step: SetVariablesStep, cx: CompileContext, next: Handler): Handler {
	const setters = Object.entries(step.variables).map(([name, value]) =>
		compileSetter(cx.template(name, 'empty'), value, cx),
	);
	if (setters.length === 1) {
		const setVariable = setters[0]!;
		return x => {
			setVariable(x);
			return next(x);
		};
	}
	return x => {
		for (let i = 0; i < setters.length; i++) setters[i]!(x);
		return next(x);
	};
}

function compileSetter(nameTemplate: Template, value: VariableValue, cx: CompileContext): (x: Exchange) => void {
	const template = typeof value === 'string' ? cx.template(value, 'empty') : undefined;
	const constant = template ? template.constant : value;
	if (nameTemplate.constant !== undefined && constant !== undefined) {
		const key = nameTemplate.constant;
		return x => {
			x.variables.set(key, constant);
		};
	}
	return x => {
		x.variables.set(nameTemplate.render(x), constant ?? template!.render(x));
	};
}

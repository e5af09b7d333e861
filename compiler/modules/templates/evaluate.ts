/** Compiles the pipelines of templates, with their operands, fields and calls, to closures. */
import type { Command, Operand, Pipeline, SourceRange } from './ast.ts';
import {
	argumentCountMistake,
	argumentTypeMistake,
	chargeResult,
	convertArgument,
	type FunctionTable,
	parameterKind,
	type TemplateFunction,
} from './function.ts';
import { lineOfOffset } from './lexer.ts';
import type { TemplateRun, VariableSlots } from './run.ts';
import { FunctionError, LimitError, TemplateFailure } from './template-error.ts';
import { asDictionary, Callable, isObject, isTrue, typeName, type Value } from './value.ts';

/** A compiled pipeline or operand. */
export type Evaluator = (run: TemplateRun, dot: Value, variables: VariableSlots) => Value;

/** A compiled command. `pipedValue` is the value of the previous command of the pipeline, if any. */
type EvaluateCommand = (run: TemplateRun, dot: Value, variables: VariableSlots, pipedValue: Value) => Value;

/** The source of the template being compiled, and the functions that it can call. */
export interface CompileScope {
	readonly text: string;
	readonly functions: FunctionTable;
}

/** Throws a TemplateFailure that names a place: `template: name:line:column: executing "name" at <.X>: reason`. */
export function failAtPlace(
	scope: CompileScope,
	place: SourceRange,
	run: TemplateRun,
	reason: string,
	cause?: unknown,
): never {
	const { text } = scope;
	const column = place.start - text.lastIndexOf('\n', place.start - 1);
	const location = `${run.parseName}:${lineOfOffset(text, place.start)}:${column}`;
	const context = text.slice(place.start, place.end).replace(/\s+/g, ' ');
	const shortContext = context.length > 40 ? `${context.slice(0, 40)}...` : context;
	const message = `template: ${location}: executing "${run.templateName}" at <${shortContext}>: ${reason}`;
	throw new TemplateFailure(message, cause === undefined ? undefined : { cause });
}

/** Compiles a pipeline, including its assignments. */
export function compilePipeline(pipeline: Pipeline, scope: CompileScope): Evaluator {
	const value = compileCommands(pipeline.commands, scope);
	const [slot] = pipeline.slots;
	if (slot === undefined) return value;
	return (run, dot, variables) => {
		variables[slot] = value(run, dot, variables);
		return variables[slot];
	};
}

/** Compiles the commands of a pipeline without its assignments. */
export function compileCommands(commands: readonly Command[], scope: CompileScope): Evaluator {
	const [firstOperand, ...otherCommands] = commands.map((command, i) => compileCommand(command, i > 0, scope));
	if (otherCommands.length === 0) return (run, dot, variables) => firstOperand!(run, dot, variables, null);
	return (run, dot, variables) => {
		let value = firstOperand!(run, dot, variables, null);
		for (const command of otherCommands) value = command(run, dot, variables, value);
		return value;
	};
}

function compileCommand(command: Command, isPiped: boolean, scope: CompileScope): EvaluateCommand {
	const [firstOperand, ...otherCommands] = command.operands;
	const args = otherCommands.map(operand => compileOperand(operand, scope));
	switch (firstOperand!.kind) {
		case 'function':
			return compileCall(firstOperand!.name, firstOperand!, otherCommands, args, isPiped, scope);
		case 'field':
			return compileMethod(firstOperand!, otherCommands, args, isPiped, scope);
		default:
			break;
	}
	const value = compileOperand(firstOperand!, scope);
	if (args.length === 0 && !isPiped) return value;
	return run => failAtPlace(scope, firstOperand!, run, "can't give argument to non-function");
}

function compileOperand(operand: Operand, scope: CompileScope): Evaluator {
	switch (operand.kind) {
		case 'dot':
			return (_, dot) => dot;
		case 'nil':
			return () => null;
		case 'literal': {
			const { value } = operand;
			return () => value;
		}
		case 'variable': {
			const { slot } = operand;
			return (_, __, variables) => variables[slot] ?? null;
		}
		case 'function': {
			const call = compileCall(operand.name, operand, [], [], false, scope);
			return (run, dot, variables) => call(run, dot, variables, null);
		}
		case 'pipeline':
			return compilePipeline(operand.pipeline, scope);
		case 'field': {
			const field = compileMethod(operand, [], [], false, scope);
			return (run, dot, variables) => field(run, dot, variables, null);
		}
	}
}

function compileMethod(
	operand: Operand & { kind: 'field' },
	operands: readonly Operand[],
	args: readonly Evaluator[],
	isPiped: boolean,
	scope: CompileScope,
): EvaluateCommand {
	const operandValue = compileOperand(operand.operand, scope);
	const { name } = operand;
	return (run, dot, variables, pipedValue) => {
		run.budget.spend(1);
		const member = memberOf(scope, operand, run, operandValue(run, dot, variables), name);
		if (!(member instanceof Callable)) {
			if (args.length === 0 && !isPiped) return member;
			return failAtPlace(scope, operand, run, `${name} has arguments but cannot be invoked as function`);
		}
		const values = args.map(arg => arg(run, dot, variables));
		if (isPiped) values.push(pipedValue);
		return withPlaceInErrors(scope, operand, run, name, () => {
			for (const [i, value] of values.entries()) {
				const kind = member.parameters[i];
				if (kind === undefined) break;
				if (convertArgument(value, kind as 'string') === undefined) {
					return failAtPlace(scope, operands[i] ?? operand, run, argumentTypeMistake(value, kind as 'string'));
				}
			}
			if (values.length !== member.parameters.length) {
				run.fail(`wrong number of args for ${name}: want ${member.parameters.length} got ${values.length}`);
			}
			return chargeResult(run, member.call(run, values));
		});
	};
}

function memberOf(scope: CompileScope, place: SourceRange, run: TemplateRun, value: Value, name: string): Value {
	if (value instanceof Map) return value.get(name) ?? null;
	if (value === null) return failAtPlace(scope, place, run, `nil pointer evaluating interface {}.${name}`);
	if (isObject(value)) {
		const member = value.member(name);
		if (member !== undefined) return member;
		const entries = asDictionary(value);
		if (entries) return entries.get(name) ?? null;
	}
	return failAtPlace(scope, place, run, `can't evaluate field ${name} in type ${typeName(value)}`);
}

function compileCall(
	name: string,
	place: SourceRange,
	operands: readonly Operand[],
	args: readonly Evaluator[],
	isPiped: boolean,
	scope: CompileScope,
): EvaluateCommand {
	if (name === 'and' || name === 'or') return compileLogic(name, place, args, isPiped, scope);
	const fn = scope.functions.get(name)!;
	const mistake = argumentCountMistake(name, fn, args.length + (isPiped ? 1 : 0));
	if (mistake) return run => failAtPlace(scope, place, run, mistake);
	const callRange: SourceRange = { start: place.start, end: operands.at(-1)?.end ?? place.end };
	return (run, dot, variables, pipedValue) => {
		run.budget.spend(1);
		const values: Value[] = [];
		for (const [i, arg] of args.entries()) {
			values.push(checkArgument(scope, operands[i]!, run, fn, i, arg(run, dot, variables)));
		}
		if (isPiped) values.push(checkArgument(scope, place, run, fn, args.length, pipedValue));
		return withPlaceInErrors(scope, callRange, run, name, () => chargeResult(run, fn.call(run, values)));
	};
}

function checkArgument(
	scope: CompileScope,
	place: SourceRange,
	run: TemplateRun,
	fn: TemplateFunction,
	index: number,
	value: Value,
): Value {
	const kind = parameterKind(fn, index);
	const convertedValue = convertArgument(value, kind);
	return convertedValue === undefined
		? failAtPlace(scope, place, run, argumentTypeMistake(value, kind))
		: convertedValue;
}

/** Compiles `and` or `or`. Evaluation stops at the argument that decides the result, and that argument is the result. */
function compileLogic(
	name: 'and' | 'or',
	place: SourceRange,
	args: readonly Evaluator[],
	isPiped: boolean,
	scope: CompileScope,
): EvaluateCommand {
	if (args.length === 0 && !isPiped) {
		return run => failAtPlace(scope, place, run, `wrong number of args for ${name}: want at least 1 got 0`);
	}
	const decidingValue = name === 'or';
	return (run, dot, variables, pipedValue) => {
		let value: Value = null;
		for (const arg of args) {
			run.budget.spend(1);
			value = arg(run, dot, variables);
			if (isTrue(value) === decidingValue) return value;
		}
		return isPiped ? pipedValue : value;
	};
}

/** Runs a call, and adds its place in the template to its errors. */
function withPlaceInErrors(
	scope: CompileScope,
	place: SourceRange,
	run: TemplateRun,
	name: string,
	call: () => Value,
): Value {
	try {
		return call();
	} catch (error) {
		if (error instanceof FunctionError)
			failAtPlace(scope, place, run, `error calling ${name}: ${error.message}`, error);
		if (error instanceof LimitError) failAtPlace(scope, place, run, error.message, error);
		throw error;
	}
}

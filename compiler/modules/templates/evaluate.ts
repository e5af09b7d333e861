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

/** Evaluates a compiled pipeline or operand. */
export type Evaluator = (run: TemplateRun, dot: Value, variables: VariableSlots) => Value;

/** Evaluates a compiled command. `pipedValue` is the value of the previous command of the pipeline, if any. */
type EvaluateCommand = (run: TemplateRun, dot: Value, variables: VariableSlots, pipedValue: Value) => Value;

/** The source of the template being compiled, and the functions that it can call. */
export interface CompileScope {
	readonly text: string;
	readonly functions: FunctionTable;
}

/** Throws a TemplateFailure that names a position: `template: name:line:column: executing "name" at <.X>: reason`. */
export function failAtPlace(
	scope: CompileScope,
	sourceRange: SourceRange,
	run: TemplateRun,
	reason: string,
	cause?: unknown,
): never {
	const { text } = scope;
	const column = sourceRange.start - text.lastIndexOf('\n', sourceRange.start - 1);
	const location = `${run.sourceName}:${lineOfOffset(text, sourceRange.start)}:${column}`;
	const excerpt = text.slice(sourceRange.start, sourceRange.end).replace(/\s+/g, ' ');
	const shortExcerpt = excerpt.length > 40 ? `${excerpt.slice(0, 40)}...` : excerpt;
	const message = `template: ${location}: executing "${run.templateName}" at <${shortExcerpt}>: ${reason}`;
	throw new TemplateFailure(message, cause === undefined ? undefined : { cause });
}

/** Compiles a pipeline, including its assignments. */
export function compilePipeline(pipeline: Pipeline, scope: CompileScope): Evaluator {
	const evaluateCommands = compileCommands(pipeline.commands, scope);
	const [slot] = pipeline.slots;
	if (slot === undefined) return evaluateCommands;
	return (run, dot, variables) => {
		variables[slot] = evaluateCommands(run, dot, variables);
		return variables[slot];
	};
}

/** Compiles the commands of a pipeline without its assignments. */
export function compileCommands(commands: readonly Command[], scope: CompileScope): Evaluator {
	const [firstCommand, ...otherCommands] = commands.map((command, i) => compileCommand(command, i > 0, scope));
	if (otherCommands.length === 0) return (run, dot, variables) => firstCommand!(run, dot, variables, null);
	return (run, dot, variables) => {
		let value = firstCommand!(run, dot, variables, null);
		for (const command of otherCommands) value = command(run, dot, variables, value);
		return value;
	};
}

function compileCommand(command: Command, isPiped: boolean, scope: CompileScope): EvaluateCommand {
	const [firstOperand, ...argumentOperands] = command.operands;
	const args = argumentOperands.map(operand => compileOperand(operand, scope));
	switch (firstOperand!.kind) {
		case 'function':
			return compileCall(firstOperand!.name, firstOperand!, argumentOperands, args, isPiped, scope);
		case 'field':
			return compileMember(firstOperand!, argumentOperands, args, isPiped, scope);
		default:
			break;
	}
	const evaluateOperand = compileOperand(firstOperand!, scope);
	if (args.length === 0 && !isPiped) return evaluateOperand;
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
			const evaluateCall = compileCall(operand.name, operand, [], [], false, scope);
			return (run, dot, variables) => evaluateCall(run, dot, variables, null);
		}
		case 'pipeline':
			return compilePipeline(operand.pipeline, scope);
		case 'field': {
			const evaluateField = compileMember(operand, [], [], false, scope);
			return (run, dot, variables) => evaluateField(run, dot, variables, null);
		}
	}
}

function compileMember(
	operand: Operand & { kind: 'field' },
	argumentOperands: readonly Operand[],
	args: readonly Evaluator[],
	isPiped: boolean,
	scope: CompileScope,
): EvaluateCommand {
	const evaluateOperand = compileOperand(operand.operand, scope);
	const { name } = operand;
	return (run, dot, variables, pipedValue) => {
		run.budget.spendSteps(1);
		const member = memberOf(scope, operand, run, evaluateOperand(run, dot, variables), name);
		if (!(member instanceof Callable)) {
			if (args.length === 0 && !isPiped) return member;
			return failAtPlace(scope, operand, run, `${name} has arguments but cannot be invoked as function`);
		}
		const argumentValues = args.map(arg => arg(run, dot, variables));
		if (isPiped) argumentValues.push(pipedValue);
		return withPlaceInErrors(scope, operand, run, name, () => {
			for (const [i, value] of argumentValues.entries()) {
				const kind = member.parameters[i];
				if (kind === undefined) break;
				if (convertArgument(value, kind as 'string') === undefined) {
					return failAtPlace(scope, argumentOperands[i] ?? operand, run, argumentTypeMistake(value, kind as 'string'));
				}
			}
			if (argumentValues.length !== member.parameters.length) {
				run.fail(`wrong number of args for ${name}: want ${member.parameters.length} got ${argumentValues.length}`);
			}
			return chargeResult(run, member.call(run, argumentValues));
		});
	};
}

function memberOf(scope: CompileScope, sourceRange: SourceRange, run: TemplateRun, value: Value, name: string): Value {
	if (value instanceof Map) return value.get(name) ?? null;
	if (value === null) return failAtPlace(scope, sourceRange, run, `nil pointer evaluating interface {}.${name}`);
	if (isObject(value)) {
		const member = value.member(name);
		if (member !== undefined) return member;
		const entries = asDictionary(value);
		if (entries) return entries.get(name) ?? null;
	}
	return failAtPlace(scope, sourceRange, run, `can't evaluate field ${name} in type ${typeName(value)}`);
}

function compileCall(
	name: string,
	sourceRange: SourceRange,
	argumentOperands: readonly Operand[],
	args: readonly Evaluator[],
	isPiped: boolean,
	scope: CompileScope,
): EvaluateCommand {
	if (name === 'and' || name === 'or') return compileLogic(name, sourceRange, args, isPiped, scope);
	const fn = scope.functions.get(name)!;
	const countMistake = argumentCountMistake(name, fn, args.length + (isPiped ? 1 : 0));
	if (countMistake) return run => failAtPlace(scope, sourceRange, run, countMistake);
	const callRange: SourceRange = { start: sourceRange.start, end: argumentOperands.at(-1)?.end ?? sourceRange.end };
	return (run, dot, variables, pipedValue) => {
		run.budget.spendSteps(1);
		const argumentValues: Value[] = [];
		for (const [i, arg] of args.entries()) {
			argumentValues.push(checkArgument(scope, argumentOperands[i]!, run, fn, i, arg(run, dot, variables)));
		}
		if (isPiped) argumentValues.push(checkArgument(scope, sourceRange, run, fn, args.length, pipedValue));
		return withPlaceInErrors(scope, callRange, run, name, () => chargeResult(run, fn.call(run, argumentValues)));
	};
}

function checkArgument(
	scope: CompileScope,
	sourceRange: SourceRange,
	run: TemplateRun,
	fn: TemplateFunction,
	index: number,
	value: Value,
): Value {
	const kind = parameterKind(fn, index);
	const convertedValue = convertArgument(value, kind);
	return convertedValue === undefined
		? failAtPlace(scope, sourceRange, run, argumentTypeMistake(value, kind))
		: convertedValue;
}

/** Compiles `and` or `or`. Evaluation stops at the argument that decides the result, and that argument is the result. */
function compileLogic(
	name: 'and' | 'or',
	sourceRange: SourceRange,
	args: readonly Evaluator[],
	isPiped: boolean,
	scope: CompileScope,
): EvaluateCommand {
	if (args.length === 0 && !isPiped) {
		return run => failAtPlace(scope, sourceRange, run, `wrong number of args for ${name}: want at least 1 got 0`);
	}
	const decidingValue = name === 'or';
	return (run, dot, variables, pipedValue) => {
		let value: Value = null;
		for (const arg of args) {
			run.budget.spendSteps(1);
			value = arg(run, dot, variables);
			if (isTrue(value) === decidingValue) return value;
		}
		return isPiped ? pipedValue : value;
	};
}

/** Runs a call, and adds the call's position in the template to its errors. */
function withPlaceInErrors(
	scope: CompileScope,
	sourceRange: SourceRange,
	run: TemplateRun,
	name: string,
	call: () => Value,
): Value {
	try {
		return call();
	} catch (error) {
		if (error instanceof FunctionError)
			failAtPlace(scope, sourceRange, run, `error calling ${name}: ${error.message}`, error);
		if (error instanceof LimitError) failAtPlace(scope, sourceRange, run, error.message, error);
		throw error;
	}
}

/** Compiles the statements of templates to closures. */
import type { SourceRange, Statement } from './ast.ts';
import { type CompileScope, compileCommands, compilePipeline, type Evaluator, failAtPlace } from './evaluate.ts';
import { printValue } from './format-value.ts';
import type { TemplateRun, VariableSlots } from './run.ts';
import { LimitError } from './template-error.ts';
import { asDictionary, isList, isTrue, sortedKeys, typeName, type Value } from './value.ts';

/** What to do after a statement: execute the next statement, end the enclosing loop, or begin the loop's next iteration. */
const NORMAL = 0;
const BREAK = 1;
const CONTINUE = 2;
type Outcome = typeof NORMAL | typeof BREAK | typeof CONTINUE;

/** Runs compiled statements, and returns what to do next. */
export type TemplateBody = (run: TemplateRun, dot: Value, variables: VariableSlots) => Outcome;

export function compileStatements(statements: readonly Statement[], scope: CompileScope): TemplateBody {
	const bodies = statements.map(statement => compileStatement(statement, scope));
	if (bodies.length === 1) return bodies[0]!;
	return (run, dot, variables) => {
		for (const body of bodies) {
			const outcome = body(run, dot, variables);
			if (outcome !== NORMAL) return outcome;
		}
		return NORMAL;
	};
}

function compileStatement(statement: Statement, scope: CompileScope): TemplateBody {
	switch (statement.kind) {
		case 'text': {
			const { text } = statement;
			return run => {
				run.write(text);
				return NORMAL;
			};
		}
		case 'print': {
			const { pipeline } = statement;
			const evaluatePipeline = compilePipeline(pipeline, scope);
			const hasOutput = pipeline.slots.length === 0;
			return withPlaceInLimitError(scope, pipeline, (run, dot, variables) => {
				run.budget.spendSteps(1);
				const printedValue = evaluatePipeline(run, dot, variables);
				if (hasOutput) run.write(typeof printedValue === 'string' ? printedValue : printValue(run, printedValue));
				return NORMAL;
			});
		}
		case 'if':
		case 'with': {
			const evaluateCondition = compilePipeline(statement.pipeline, scope);
			const body = compileStatements(statement.body, scope);
			const elseBody = compileStatements(statement.otherwise, scope);
			const setsDot = statement.kind === 'with';
			return withPlaceInLimitError(scope, statement.pipeline, (run, dot, variables) => {
				run.budget.spendSteps(1);
				const value = evaluateCondition(run, dot, variables);
				if (!isTrue(value)) return elseBody(run, dot, variables);
				return body(run, setsDot ? value : dot, variables);
			});
		}
		case 'range':
			return compileRange(statement, scope);
		case 'template':
			return compileTemplateCall(statement, scope);
		case 'break':
			return () => BREAK;
		case 'continue':
			return () => CONTINUE;
	}
}

/**
 * Compiles a statement so that a LimitError names the statement's position in the template, even if the limit was not reached in
 * a function call.
 */
function withPlaceInLimitError(scope: CompileScope, sourceRange: SourceRange, body: TemplateBody): TemplateBody {
	return (run, dot, variables) => {
		try {
			return body(run, dot, variables);
		} catch (error) {
			if (error instanceof LimitError) failAtPlace(scope, sourceRange, run, error.message, error);
			throw error;
		}
	};
}

function compileRange(statement: Statement & { kind: 'range' }, scope: CompileScope): TemplateBody {
	const { pipeline } = statement;
	const evaluateSubject: Evaluator = compileCommands(pipeline.commands, scope);
	const body = compileStatements(statement.body, scope);
	const elseBody = compileStatements(statement.otherwise, scope);
	const { slots } = pipeline;
	const elementSlot = slots.at(-1);
	const indexSlot = slots.length === 2 ? slots[0] : undefined;

	const runIteration = (run: TemplateRun, key: Value, value: Value, variables: VariableSlots): boolean => {
		run.budget.spendSteps(1);
		if (elementSlot !== undefined) variables[elementSlot] = value;
		if (indexSlot !== undefined) variables[indexSlot] = key;
		return body(run, value, variables) !== BREAK;
	};
	return withPlaceInLimitError(scope, pipeline, (run, dot, variables) => {
		const value = evaluateSubject(run, dot, variables);
		if (isList(value)) {
			if (value.length === 0) return elseBody(run, dot, variables);
			for (let i = 0; i < value.length; i++) if (!runIteration(run, BigInt(i), value[i]!, variables)) break;
			return NORMAL;
		}
		if (typeof value === 'bigint') {
			if (value <= 0n) return elseBody(run, dot, variables);
			if (indexSlot !== undefined)
				failAtPlace(scope, pipeline, run, "can't use two variables to range over an integer");
			for (let i = 0n; i < value; i++) if (!runIteration(run, i, i, variables)) break;
			return NORMAL;
		}
		if (value === null) return elseBody(run, dot, variables);
		const entries = asDictionary(value);
		if (!entries) failAtPlace(scope, pipeline, run, `range can't iterate over a value of type ${typeName(value)}`);
		if (entries!.size === 0) return elseBody(run, dot, variables);
		run.budget.chargeEntries(entries!.size);
		for (const key of sortedKeys(entries!)) if (!runIteration(run, key, entries!.get(key)!, variables)) break;
		return NORMAL;
	});
}

function compileTemplateCall(statement: Statement & { kind: 'template' }, scope: CompileScope): TemplateBody {
	const { name } = statement;
	const evaluateData = statement.pipeline ? compilePipeline(statement.pipeline, scope) : () => null;
	return withPlaceInLimitError(scope, statement, (run, dot, variables) => {
		const template = run.templates.get(name);
		if (!template) failAtPlace(scope, statement, run, `template "${name}" not defined`);
		const value = evaluateData(run, dot, variables);
		const { sourceName, templateName } = run;
		run.budget.spendSteps(1);
		run.budget.enterLevel();
		run.sourceName = template!.sourceName;
		run.templateName = name;
		template!.body(run, value, [value]);
		run.budget.leaveLevel();
		run.sourceName = sourceName;
		run.templateName = templateName;
		return NORMAL;
	});
}

/**
 * The template language, Go's text/template: a source is compiled once to closures, and executed any number of times. Output is
 * not escaped; pages can use `html`, `js` and `urlquery`.
 */
import { compileStatements, type TemplateBody } from './compile.ts';
import type { FunctionTable } from './function.ts';
import type { Delimiters, TemplateSource } from './lexer.ts';
import { parseTemplate } from './parser.ts';
import { type ExecutionBudget, type RunDependencies, TemplateRun } from './run.ts';
import { LimitError, TemplateFailure, TemplateSyntaxError } from './template-error.ts';
import type { Value } from './value.ts';

export const DEFAULT_DELIMITERS: Delimiters = { open: '{{', close: '}}' };

/** A compiled template source. */
export interface TextTemplate {
	readonly body: TemplateBody;
	/** The templates that the source defines, by name. */
	readonly definitions: ReadonlyMap<string, TemplateBody>;
}

/** The variant of the template language: its delimiters and functions. */
export interface TemplateLanguage {
	readonly delimiters: Delimiters;
	readonly functions: FunctionTable;
	/** Functions that are known but unavailable, with the reason worded as part of a sentence. */
	readonly refusedFunctions?: ReadonlyMap<string, string>;
}

/** Compiles a template source. `name` is only used in messages. Throws TemplateFailure. */
export function compileTextTemplate(source: TemplateSource, language: TemplateLanguage, name: string): TextTemplate {
	const { functions, refusedFunctions } = language;
	const availabilityOf = (word: string): true | string => {
		if (functions.has(word) || word === 'and' || word === 'or') return true;
		const reason = refusedFunctions?.get(word);
		return reason === undefined ? `function "${word}" not defined` : `function "${word}" ${reason}`;
	};
	try {
		const parsedTemplate = parseTemplate(source, language.delimiters, availabilityOf);
		const scope = { text: source.text, functions };
		const definitions = new Map<string, TemplateBody>();
		for (const [definedName, statements] of parsedTemplate.definitions)
			definitions.set(definedName, compileStatements(statements, scope));
		return { body: compileStatements(parsedTemplate.statements, scope), definitions };
	} catch (error) {
		throw error instanceof TemplateSyntaxError ? error.withTemplateName(name) : error;
	}
}

/** The input of an execution. */
export interface TemplateExecution {
	/** Name of the template in messages. */
	readonly name: string;
	/** The initial value of `.` and `$`. */
	readonly data: Value;
	readonly budget: ExecutionBudget;
	readonly deps: RunDependencies;
}

/**
 * Executes a template and returns its output. Throws TemplateFailure, and whatever functions of the embedding program throw, such
 * as Suspension.
 */
export function executeTextTemplate(template: TextTemplate, execution: TemplateExecution): string {
	const { name, data, budget, deps } = execution;
	const run = new TemplateRun(name, budget, deps);
	addTemplates(run, template, name);
	try {
		budget.enterLevel();
		template.body(run, data, [data]);
		budget.leaveLevel();
		return run.output();
	} catch (error) {
		if (error instanceof LimitError) throw new TemplateFailure(`template: ${name}: ${error.message}`, { cause: error });
		if (error instanceof RangeError) {
			const reason = /call stack/.test(error.message) ? 'templates or values nest too deeply' : 'a value is too large';
			throw new TemplateFailure(`template: ${run.sourceName}: ${reason}`, { cause: error });
		}
		throw error;
	}
}

/** Makes the templates that a source defines callable during an execution. */
export function addTemplates(run: TemplateRun, template: TextTemplate, name: string): void {
	for (const [definedName, body] of template.definitions) run.templates.set(definedName, { body, sourceName: name });
}

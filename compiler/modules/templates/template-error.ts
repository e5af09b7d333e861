/** Errors in templates: parse errors, with a place in the text, and run-time errors. */

/** A mistake in a template's text or its execution. `message` names the template, line and column if known. */
export class TemplateFailure extends Error {
	constructor(message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = 'TemplateFailure';
	}
}

/** A mistake in the text; the caller adds the name of the template. */
export class TemplateSyntaxError extends TemplateFailure {
	/** Starting at 1. */
	readonly line: number;
	readonly reason: string;

	constructor(line: number, reason: string) {
		super(`template: :${line}: ${reason}`);
		this.line = line;
		this.reason = reason;
	}

	/** Returns the failure with the template's name. */
	named(name: string): TemplateFailure {
		return new TemplateFailure(`template: ${name}:${this.line}: ${this.reason}`, { cause: this });
	}
}

/** A function's complaint about its arguments; the evaluation adds the place of the call. */
export class FunctionError extends Error {}

/** A limit of the sandbox was reached; nothing in the template can catch it. */
export class LimitError extends Error {}

/** Thrown through an evaluation that needs a result not yet available: the evaluation is repeated when the promise settles. */
export class Suspension {
	readonly until: Promise<unknown>;

	constructor(until: Promise<unknown>) {
		this.until = until;
	}
}

/** What goes wrong in a template: at parsing, with a place in the text, or while it runs. */

/** A mistake in a template's text or its execution. `message` names the template, line and column where they are known. */
export class TemplateFailure extends Error {
	constructor(message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = 'TemplateFailure';
	}
}

/** A mistake in the text: the name of the template is put before it by who knows it. */
export class TemplateSyntaxError extends TemplateFailure {
	/** From 1. */
	readonly line: number;
	/** What is wrong. */
	readonly reason: string;

	constructor(line: number, reason: string) {
		super(`template: :${line}: ${reason}`);
		this.line = line;
		this.reason = reason;
	}

	/** The same for a template of that name. */
	named(name: string): TemplateFailure {
		return new TemplateFailure(`template: ${name}:${this.line}: ${this.reason}`, { cause: this });
	}
}

/** What a function says is wrong with its arguments; the place of the call is added by the evaluation. */
export class FunctionError extends Error {}

/** A bound of the sandbox was reached: nothing in the template can catch it. */
export class LimitError extends Error {}

/** Thrown through an evaluation that needs something that is not here yet: it runs again when the promise has ended. */
export class Suspension {
	readonly until: Promise<unknown>;

	constructor(until: Promise<unknown>) {
		this.until = until;
	}
}

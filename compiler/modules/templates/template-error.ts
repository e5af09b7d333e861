/** Errors in templates: syntax errors, which name a line of the source, and run-time errors. */

/** A mistake in a template's source or its execution. `message` names the template, line and column if known. */
export class TemplateFailure extends Error {
	constructor(message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = 'TemplateFailure';
	}
}

/** A syntax error; the caller adds the name of the template. */
export class TemplateSyntaxError extends TemplateFailure {
	/** Line of the error, starting at 1. */
	readonly line: number;
	readonly reason: string;

	constructor(line: number, reason: string) {
		super(`template: :${line}: ${reason}`);
		this.line = line;
		this.reason = reason;
	}

	/** Returns the error with the name of the template in its message. */
	withTemplateName(name: string): TemplateFailure {
		return new TemplateFailure(`template: ${name}:${this.line}: ${this.reason}`, { cause: this });
	}
}

/** Thrown by a function for unusable arguments. The caller adds the position of the call in the template. */
export class FunctionError extends Error {}

/** Thrown when an execution exceeds one of its bounds (see run.ts). Nothing in the template can catch it. */
export class LimitError extends Error {}

/** Thrown by a function whose result is not available yet. When `pendingResult` settles, the execution is repeated. */
export class Suspension {
	readonly pendingResult: Promise<unknown>;

	constructor(pendingResult: Promise<unknown>) {
		this.pendingResult = pendingResult;
	}
}

/** `log_append`: adds custom fields to access log entries. */

import type { Step } from '../../document/document.ts';
import { type Body, type BodySource, isStream } from '../../exchange/body.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';

interface AddLogFieldStep extends Step {
	readonly handler: 'add_log_field';
	readonly key: string;
	/** A placeholder or the name of a variable. Any other text is the value itself. */
	readonly value: string;
	readonly early?: boolean;
}

const USAGE = 'log_append [matcher] [<]<key> <value>';
const RESPONSE_BODY_PLACEHOLDER = '{http.response.body}';
/** Maximum number of bytes of a response body that are logged. */
const MAX_LOGGED_BODY_BYTES = 64 * 1024;

/** Syntax: `log_append [matcher] [<]<key> <value>`. */
export const logAppend = handlerDirective<AddLogFieldStep>({
	kind: 'handler',
	id: 'add_log_field',
	names: { configfile: ['log_append'], compatfile: ['log_append'] },
	usage: USAGE,
	summary: `Adds a field to the request's access log entry.`,
	documentation: [
		'The value is a placeholder, the name of a variable, or text. It is evaluated after the response has been sent or, with `<`',
		'before the key, when the directive runs. `{http.response.body}` is the first 64 KiB of the response body.',
		'',
		'```',
		'log_append user {http.auth.user.id}',
		'log_append <first_uri {uri}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	ownPlaceholders: [RESPONSE_BODY_PLACEHOLDER.slice(1, -1)],
	logFieldsOf: ({ key: keyWord }) => [keyWord],
	order: { rank: 60 },
	lower: ({ line, args }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 2, 2, USAGE)) return undefined;
		const [keyWord, valueWord] = args as [(typeof args)[number], (typeof args)[number]];
		const isEarly = keyWord.text.startsWith('<');
		const fieldName = isEarly ? keyWord.text.slice(1) : keyWord.text;
		if (fieldName === '') {
			cx.problem('error', 'log/no-key', keyWord.span, 'The field needs a name.', { hint: `Usage: ${USAGE}` });
			return undefined;
		}
		const valueTemplate =
			valueWord.text === RESPONSE_BODY_PLACEHOLDER ? RESPONSE_BODY_PLACEHOLDER : cx.template(valueWord);
		const step = {
			handler: 'add_log_field',
			key: fieldName,
			value: valueTemplate,
			...(isEarly ? { early: isEarly } : {}),
		} as const;
		return cx.origin<AddLogFieldStep>(step, line.span, { key: keyWord.span, value: valueWord.span });
	},
	schema: {
		properties: {
			key: { type: 'string', minLength: 1, description: 'Name of the field.' },
			value: {
				type: 'string',
				description:
					'A single placeholder, the name of a variable, or text. `{http.response.body}` is the response body.',
			},
			early: {
				type: 'boolean',
				default: false,
				description: 'Evaluates the value when the step runs, not after the response has been sent.',
			},
		},
		required: ['key', 'value'],
	},
	compile: compileAddLogField,
});

function compileAddLogField(step: AddLogFieldStep, cx: CompileContext, next: Handler): Handler {
	const { key, value } = step;
	if (value === RESPONSE_BODY_PLACEHOLDER && !step.early) return compileResponseBodyField(key, next);
	const evaluateValue = compileLogValue(value, cx);
	if (step.early) {
		return x => {
			setLogField(x, key, evaluateValue(x));
			return next(x);
		};
	}
	const addField = (x: Exchange) => setLogField(x, key, evaluateValue(x));
	return x => {
		x.log ??= {};
		if (x.log.beforeEntry) x.log.beforeEntry.push(addField);
		else x.log.beforeEntry = [addField];
		return next(x);
	};
}

function compileLogValue(value: string, cx: CompileContext): (x: Exchange) => unknown {
	const placeholderName = /^\{([^{}]+)\}$/.exec(value)?.[1];
	if (placeholderName !== undefined) return cx.placeholder(placeholderName) ?? (() => '');
	return x => x.variable(value) ?? value;
}

/** Sets a field of the request's access log entry. */
function setLogField(x: Exchange, key: string, value: unknown): void {
	x.log ??= {};
	x.log.fields ??= {};
	// Defined as a property, so that `__proto__` is a name like any other.
	Object.defineProperty(x.log.fields, key, { value, enumerable: true, configurable: true, writable: true });
}

function compileResponseBodyField(key: string, next: Handler): Handler {
	const captureBody = (x: Exchange): void => {
		x.response.body = captureFirstBytes(x.response.body, bytes => setLogField(x, key, bytes.toString('utf8')));
	};
	return x => {
		const pending = next(x);
		return pending instanceof Promise ? pending.then(() => captureBody(x)) : captureBody(x);
	};
}

/** Returns a body with the same bytes. After the body has been read, its first bytes are passed to `onBytes`. */
function captureFirstBytes(body: Body, onBytes: (bytes: Buffer) => void): Body {
	if (body === null) return null;
	if (!isStream(body)) {
		const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body);
		onBytes(bytes.subarray(0, MAX_LOGGED_BODY_BYTES));
		return body;
	}
	return new CapturingBody(body, onBytes);
}

class CapturingBody implements BodySource {
	readonly #body: BodySource;
	readonly #onBytes: (bytes: Buffer) => void;
	readonly #capturedPieces: Buffer[] = [];
	#capturedBytes = 0;

	constructor(body: BodySource, onBytes: (bytes: Buffer) => void) {
		this.#body = body;
		this.#onBytes = onBytes;
	}

	get length(): number | undefined {
		return this.#body.length;
	}

	get trailers() {
		return this.#body.trailers;
	}

	get heldBytes(): number {
		return this.#capturedBytes + (this.#body.heldBytes ?? 0);
	}

	onIdle(): void {
		this.#body.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		const pulled = this.#body.pull(maxBytes);
		return pulled instanceof Promise ? pulled.then(bytes => this.#capture(bytes)) : this.#capture(pulled);
	}

	cancel(reason?: unknown): void {
		this.#reportBytes();
		this.#body.cancel(reason);
	}

	#capture(bytes: Uint8Array | null): Uint8Array | null {
		if (bytes === null) this.#reportBytes();
		else if (this.#capturedBytes < MAX_LOGGED_BODY_BYTES) {
			// Copied, because the bytes are valid only until the next pull.
			const piece = Buffer.from(bytes.subarray(0, MAX_LOGGED_BODY_BYTES - this.#capturedBytes));
			this.#capturedPieces.push(piece);
			this.#capturedBytes += piece.length;
		}
		return bytes;
	}

	#reportBytes(): void {
		this.#onBytes(Buffer.concat(this.#capturedPieces));
	}
}

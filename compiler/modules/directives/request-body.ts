/** `request_body`: limits the request body or replaces it. */
import type { Step } from '../../document/document.ts';
import { type Body, type BodySource, bodyLength, isStream } from '../../exchange/body.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import { HttpError } from '../../exchange/http-error.ts';
import { handlerDirective } from '../contract/directive.ts';
import { MAX_DERIVED_BODY_CHARS } from '../contract/request-change.ts';

interface RequestContentStep extends Step {
	readonly handler: 'request_content';
	readonly max_size?: number;
	readonly replace?: string;
}

const USAGE = 'request_body [matcher] { max_size <size>; set <text> }';

/** Syntax: `request_body [matcher] { max_size <size>; set <text> }`. */
export const requestBody = handlerDirective<RequestContentStep>({
	kind: 'handler',
	id: 'request_content',
	probeChanges: ({ max_size: maxBytes = MAX_DERIVED_BODY_CHARS }) =>
		maxBytes < MAX_DERIVED_BODY_CHARS ? [{ body: 'x'.repeat(maxBytes + 1) }, { body: '' }] : [],
	names: { configfile: ['request_body'], compatfile: ['request_body'] },
	usage: USAGE,
	summary: 'Limits the size of the request body or replaces it.',
	documentation: [
		'| Line | Meaning |',
		'| --- | --- |',
		'| `max_size SIZE` | a longer body causes an error 413 when a handler reads beyond SIZE, or starts to read it if the length is known |',
		'| `set TEXT` | handlers see TEXT, which may contain placeholders, instead of the body that was sent |',
		'',
		'```',
		'request_body /upload/* {',
		'	max_size 10MB',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 110 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const fields: { max_size?: number; replace?: string } = {};
		cx.subdirectives(
			line.block,
			{
				max_size: (words, innerLine) => {
					const size = cx.count(innerLine, words, 1, 1, 'max_size <size>') ? cx.size(words[0]!) : undefined;
					if (size !== undefined) fields.max_size = size;
				},
				set: (words, innerLine) => {
					if (cx.count(innerLine, words, 1, 1, 'set <text>')) fields.replace = cx.template(words[0]!);
				},
			},
			'request_body',
		);
		return { handler: 'request_content', ...fields };
	},
	schema: {
		properties: {
			max_size: { type: 'integer', minimum: 0, description: 'Maximum bytes of the body.' },
			replace: { type: 'string', description: 'Text that replaces the body, with placeholders.' },
		},
	},
	compile: (step, cx, next) => {
		const { max_size: maxBytes } = step;
		const bodyTemplate = step.replace === undefined ? undefined : cx.template(step.replace, 'empty');
		return x => {
			const { request } = x;
			if (bodyTemplate) {
				if (isStream(request.body)) request.body.cancel();
				const body = bodyTemplate.constant ?? bodyTemplate.render(x);
				request.body = body === '' ? null : body;
			}
			if (maxBytes !== undefined) request.body = limitBody(request.body, maxBytes);
			return next(x);
		};
	},
});

/** Returns a body with the same bytes, which fails with HttpError 413 when more than `maxBytes` are read. */
function limitBody(body: Body, maxBytes: number): Body {
	if (isStream(body)) return new LimitedBody(body, maxBytes);
	return (bodyLength(body) ?? 0) <= maxBytes ? body : new TooLargeBody();
}

function tooLargeError(): HttpError {
	return new HttpError(413, 'The request body is larger than `request_body` allows.');
}

/** A body that is known to be too large, and fails when it is read. */
class TooLargeBody implements BodySource {
	readonly length = undefined;

	pull(): never {
		throw tooLargeError();
	}

	cancel(): void {}
}

/** A body that fails as soon as more bytes have arrived than are allowed. */
class LimitedBody implements BodySource {
	readonly #body: BodySource;
	#remainingBytes: number;

	constructor(body: BodySource, maxBytes: number) {
		this.#body = body;
		this.#remainingBytes = body.length !== undefined && body.length > maxBytes ? -1 : maxBytes;
	}

	get length(): number | undefined {
		return this.#body.length;
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#remainingBytes < 0) return this.#failTooLarge();
		const result = this.#body.pull(maxBytes);
		return result instanceof Promise ? result.then(piece => this.#countPiece(piece)) : this.#countPiece(result);
	}

	cancel(reason?: unknown): void {
		this.#body.cancel(reason);
	}

	#countPiece(piece: Uint8Array | null): Uint8Array | null {
		if (piece === null) return null;
		this.#remainingBytes -= piece.byteLength;
		return this.#remainingBytes < 0 ? this.#failTooLarge() : piece;
	}

	#failTooLarge(): never {
		this.#remainingBytes = -1;
		const error = tooLargeError();
		this.#body.cancel(error);
		throw error;
	}
}

/** `request_body`: limits the request body or replaces it. */
import type { Step } from '../../document/document.ts';
import { type Body, type BodySource, bodyLength, isStream } from '../../exchange/body.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import { HttpError } from '../../exchange/http-error.ts';
import { handlerDirective } from '../contract/directive.ts';

interface RequestContentStep extends Step {
	readonly handler: 'request_content';
	readonly max_size?: number;
	readonly replace?: string;
}

const USAGE = 'request_body [matcher] { max_size <size>; set <text> }';

/** `request_body [matcher] { max_size <size>; set <text> }`. */
export const requestBody = handlerDirective<RequestContentStep>({
	kind: 'handler',
	id: 'request_content',
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
				max_size: (words, at) => {
					const size = cx.count(at, words, 1, 1, 'max_size <size>') ? cx.size(words[0]!) : undefined;
					if (size !== undefined) fields.max_size = size;
				},
				set: (words, at) => {
					if (cx.count(at, words, 1, 1, 'set <text>')) fields.replace = cx.template(words[0]!);
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
		const { max_size: most } = step;
		const text = step.replace === undefined ? undefined : cx.template(step.replace, 'empty');
		return x => {
			const { request } = x;
			if (text) {
				if (isStream(request.body)) request.body.cancel();
				const body = text.constant ?? text.render(x);
				request.body = body === '' ? null : body;
			}
			if (most !== undefined) request.body = bounded(request.body, most);
			return next(x);
		};
	},
});

/** Returns the body, limited: reading beyond the limit fails. */
function bounded(body: Body, most: number): Body {
	if (isStream(body)) return new BoundedBody(body, most);
	return (bodyLength(body) ?? 0) <= most ? body : new RefusedBody();
}

function tooLarge(): HttpError {
	return new HttpError(413, 'The request body is larger than `request_body` allows.');
}

/** A body that fails when it is read. */
class RefusedBody implements BodySource {
	readonly length = undefined;

	pull(): never {
		throw tooLarge();
	}

	cancel(): void {}
}

/** A body that fails when it turns out to be longer than allowed. */
class BoundedBody implements BodySource {
	readonly #body: BodySource;
	#left: number;

	constructor(body: BodySource, most: number) {
		this.#body = body;
		this.#left = body.length !== undefined && body.length > most ? -1 : most;
	}

	get length(): number | undefined {
		return this.#body.length;
	}

	get trailers(): HeaderList | undefined {
		return this.#body.trailers;
	}

	pull(most?: number): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#left < 0) return this.#refuse();
		const pulled = this.#body.pull(most);
		return pulled instanceof Promise ? pulled.then(piece => this.#counted(piece)) : this.#counted(pulled);
	}

	cancel(reason?: unknown): void {
		this.#body.cancel(reason);
	}

	#counted(piece: Uint8Array | null): Uint8Array | null {
		if (piece === null) return null;
		this.#left -= piece.byteLength;
		return this.#left < 0 ? this.#refuse() : piece;
	}

	#refuse(): never {
		this.#left = -1;
		const error = tooLarge();
		this.#body.cancel(error);
		throw error;
	}
}

/** Records the span of text from which each object of a document was lowered. */
import type { SourceSpan } from '../source/source.ts';

interface Origin {
	readonly span: SourceSpan;
	fields: { readonly [field: string]: SourceSpan | undefined } | undefined;
}

/**
 * The spans from which the objects of a document were lowered. Recorded during lowering, and looked up by JSON pointer afterwards.
 */
export class Origins {
	readonly #origins = new Map<object, Origin>();

	/** Records the span of an object and of its fields. Later calls for the object add fields but keep its span. */
	remember(value: object, span: SourceSpan, fields?: { readonly [field: string]: SourceSpan | undefined }): void {
		const origin = this.#origins.get(value);
		if (origin) origin.fields = { ...origin.fields, ...fields };
		else this.#origins.set(value, { span, fields });
	}

	/** Makes the spans of an object those of the object that replaces it. */
	move(oldObject: object, newObject: object): void {
		const origin = this.#origins.get(oldObject);
		if (origin) this.#origins.set(newObject, origin);
	}

	/** Reports whether a span has been recorded for an object. */
	has(value: object): boolean {
		return this.#origins.has(value);
	}

	/** Returns the span of the innermost recorded object or field to which a JSON pointer (RFC 6901) into `document` leads. */
	locate(document: unknown, pointer: string): SourceSpan | undefined {
		let current = document;
		let innermost = this.spanOf(current);
		if (pointer === '') return innermost;
		for (const token of pointer.slice(1).split('/')) {
			if (typeof current !== 'object' || current === null) break;
			const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
			innermost = this.#origins.get(current)?.fields?.[key] ?? innermost;
			current = (current as { [key: string]: unknown })[key];
			innermost = this.spanOf(current) ?? innermost;
		}
		return innermost;
	}

	/** Returns the span that was recorded for an object itself; undefined if there is none. */
	spanOf(value: unknown): SourceSpan | undefined {
		return typeof value === 'object' && value !== null ? this.#origins.get(value)?.span : undefined;
	}
}

/** Origins that record nothing, where places are not needed. */
export class NoOrigins extends Origins {
	override remember(): void {}
	override move(): void {}
	override has(): boolean {
		return true;
	}
}

/** Records the span of text from which each object of a document was lowered. */
import type { SourceSpan } from '../source/source.ts';

interface Origin {
	readonly span: SourceSpan;
	fieldSpans: { readonly [field: string]: SourceSpan | undefined } | undefined;
}

/**
 * The spans from which the objects of a document were lowered. Recorded during lowering, and looked up by JSON pointer afterwards.
 */
export class Origins {
	readonly #origins = new Map<object, Origin>();

	/** Records the span of an object and of its fields. Later calls for the object add fields but keep its span. */
	remember(value: object, span: SourceSpan, fieldSpans?: { readonly [field: string]: SourceSpan | undefined }): void {
		const origin = this.#origins.get(value);
		if (origin) origin.fieldSpans = { ...origin.fieldSpans, ...fieldSpans };
		else this.#origins.set(value, { span, fieldSpans });
	}

	/** Records the spans of an object for the object that replaces it. */
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
		let currentValue = document;
		let innermostSpan = this.spanOf(currentValue);
		if (pointer === '') return innermostSpan;
		for (const token of pointer.slice(1).split('/')) {
			if (typeof currentValue !== 'object' || currentValue === null) break;
			const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
			innermostSpan = this.#origins.get(currentValue)?.fieldSpans?.[key] ?? innermostSpan;
			currentValue = (currentValue as { [key: string]: unknown })[key];
			innermostSpan = this.spanOf(currentValue) ?? innermostSpan;
		}
		return innermostSpan;
	}

	/** Returns the span that was recorded for an object itself; undefined if there is none. */
	spanOf(value: unknown): SourceSpan | undefined {
		return typeof value === 'object' && value !== null ? this.#origins.get(value)?.span : undefined;
	}
}

/** Origins that record nothing, for use where places are not needed. */
export class NoOrigins extends Origins {
	override remember(): void {}
	override move(): void {}
	override has(): boolean {
		return true;
	}
}

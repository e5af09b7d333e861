/** Records the span of text from which each object of a document was lowered. */
import type { SourceSpan } from '../source/source.ts';

interface Origin {
	readonly span: SourceSpan;
	fields: { readonly [field: string]: SourceSpan | undefined } | undefined;
}

/** Records spans by object during lowering, and finds the nearest one for a JSON pointer afterwards. */
export class Origins {
	readonly #origins = new Map<object, Origin>();

	/** Records the span of an object and of its fields. A later call adds fields but keeps the span. */
	remember(value: object, span: SourceSpan, fields?: { readonly [field: string]: SourceSpan | undefined }): void {
		const origin = this.#origins.get(value);
		if (origin) origin.fields = { ...origin.fields, ...fields };
		else this.#origins.set(value, { span, fields });
	}

	/** Records for a new object the spans that were recorded for the object that it replaces. */
	move(oldObject: object, newObject: object): void {
		const origin = this.#origins.get(oldObject);
		if (origin) this.#origins.set(newObject, origin);
	}

	/** Reports whether a span has been recorded for an object. */
	has(value: object): boolean {
		return this.#origins.has(value);
	}

	/** Returns the span of the innermost recorded object or field on the path of a pointer (RFC 6901) into `document`. */
	locate(document: unknown, pointer: string): SourceSpan | undefined {
		let value = document;
		let innermost = this.spanOf(value);
		if (pointer === '') return innermost;
		for (const escaped of pointer.slice(1).split('/')) {
			if (typeof value !== 'object' || value === null) break;
			const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
			innermost = this.#origins.get(value)?.fields?.[key] ?? innermost;
			value = (value as { [key: string]: unknown })[key];
			innermost = this.spanOf(value) ?? innermost;
		}
		return innermost;
	}

	/** Returns the span recorded for an object itself. */
	spanOf(value: unknown): SourceSpan | undefined {
		return typeof value === 'object' && value !== null ? this.#origins.get(value)?.span : undefined;
	}
}

/** Records nothing. Used where places are not needed. */
export class NoOrigins extends Origins {
	override remember(): void {}
	override move(): void {}
	override has(): boolean {
		return true;
	}
}

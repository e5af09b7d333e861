/** Why an ACME server does not do what it was asked for (RFC 8555 §6.7). */

/** A problem that the client is told. */
export class AcmeRefusal extends Error {
	/** Without the prefix of the namespace: `malformed`, `badNonce`. */
	readonly type: string;
	readonly status: number;

	constructor(type: string, status: number, detail: string) {
		super(detail);
		this.name = 'AcmeRefusal';
		this.type = type;
		this.status = status;
	}

	/** The problem document. */
	get document(): { readonly type: string; readonly detail: string; readonly status: number } {
		return { type: `urn:ietf:params:acme:error:${this.type}`, detail: this.message, status: this.status };
	}
}

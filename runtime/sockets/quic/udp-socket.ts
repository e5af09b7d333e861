/**
 * A UDP socket of one thread. It is read with `recvmmsg` when the thread's poller reports data, and written with `sendmmsg`. If
 * the kernel supports it, UDP_GRO joins received datagrams and UDP_SEGMENT (GSO) splits one long write into datagrams.
 */

import { duplicateDescriptor } from '../duplicate-descriptor.ts';
import { formatIpv4, formatIpv6, SOCKET_ADDRESS_BYTES, writeSocketAddress } from '../socket-address.ts';
import { type PolledSocket, type SocketPoller, threadPoller } from '../socket-poller.ts';
import {
	CONTROL_BYTES,
	type DatagramMemory,
	type DatagramPath,
	MAX_RECEIVED_MESSAGES,
	MAX_REPLIES,
	MAX_REPLY_BYTES,
	MAX_SENT_DATAGRAMS,
	MESSAGE_HEADER_BYTES,
	PEER_ADDRESS_BYTES,
	RECEIVED_MESSAGE_BYTES,
	ReplyMemory,
	wordsOf,
} from './datagram-memory.ts';
import type { RelayedDatagram } from './datagram-relay.ts';
import { OwnedDescriptor } from './owned-descriptor.ts';
import type { QuicLibrary } from './quic-library.ts';
import { SEGMENTATION_RETRY_MS } from './quic-limits.ts';

/** Maximum `recvmmsg` calls in one turn of the event loop, so that other work gets its turn. */
const MAX_RECEIVES_PER_TURN = 8;
/** The kernel's limits for one GSO write: bytes and number of segments. */
const MAX_SEGMENTED_BYTES = 65_000;
const MAX_SEGMENTS = 60;
/** Size of OpenSSL's `BIO_ADDR`, which it always copies completely, whatever kind of address it holds. */
const BIO_ADDRESS_BYTES = 112;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_REUSEPORT = 15;
const SO_RCVBUFFORCE = 33;
const SOL_UDP = 17;
const UDP_SEGMENT = 103;
const UDP_GRO = 104;
const IPPROTO_IP = 0;
const IP_PKTINFO = 8;
const IP_MTU_DISCOVER = 10;
const IPPROTO_IPV6 = 41;
const IPV6_MTU_DISCOVER = 23;
const IPV6_V6ONLY = 26;
const IPV6_RECVPKTINFO = 49;
const IPV6_PKTINFO = 50;
/** Forbids IP fragmentation, as QUIC requires (RFC 9000 §14). */
const PMTUDISC_DO = 2;
const SOCK_DGRAM = 2;
const NONBLOCK = 0o4000;
const CLOEXEC = 0o2000000;
const DONTWAIT = 0x40;

/** Requested size in bytes of the kernel's socket buffers. Bursts arrive faster than a busy thread reads. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;

/** Receives a socket's datagrams. */
export interface DatagramSink {
	/**
	 * Handles the datagram in `bytes[start, end)`. `addressOffset` is the offset of the peer's `sockaddr` in
	 * `DatagramMemory.peerAddresses`.
	 */
	onDatagram(bytes: Buffer, start: number, end: number, addressOffset: number): void;
	/** Called after datagrams have been delivered. Their bytes are valid until it returns. */
	onDatagramsRead(): void;
	/** Called when the system accepts datagrams again. */
	writable?(): void;
}

/** The address to which a socket is bound. */
export interface UdpAddress {
	/** An IP address. */
	readonly address: string;
	readonly port: number;
	/** True if an IPv6 socket does not accept IPv4. */
	readonly only6: boolean;
	/** True if other threads bind the same address. */
	readonly shared: boolean;
	/** Descriptor of a socket that another process has bound; a duplicate of it is used instead of a new socket. */
	readonly descriptor?: number | undefined;
}

export class UdpSocket implements PolledSocket {
	registrationNumber = 0;
	/** Number of datagrams that the system did not accept. QUIC's loss recovery sends their contents again. */
	lostCount = 0;
	readonly memory: DatagramMemory;
	readonly #library: QuicLibrary;
	readonly #descriptor: OwnedDescriptor;
	readonly #fd: number;
	readonly #poller: SocketPoller;
	#sink: DatagramSink | undefined;
	#canSegment = true;
	#replies: ReplyMemory | undefined;
	#isPaused = false;
	/** Offset of the control data of the message that is being delivered. */
	#controlOffset = 0;
	#controlLength = 0;

	/** Binds the socket. Throws an error with the system's code, or `ENOSYS` if there is no poller. */
	constructor(library: QuicLibrary, memory: DatagramMemory, bindAddress: UdpAddress) {
		const poller = threadPoller();
		const addressBytes = writeSocketAddress(bindAddress.address, bindAddress.port);
		if (poller === undefined || addressBytes === undefined) throw systemError('ENOSYS');
		this.#library = library;
		this.memory = memory;
		this.#poller = poller;
		const { functions } = library;
		const family = addressBytes.readUInt16LE(0);
		const inheritedDescriptor = bindAddress.descriptor;
		const fd =
			inheritedDescriptor === undefined
				? (functions.socket(family, SOCK_DGRAM | NONBLOCK | CLOEXEC, 0) as number)
				: duplicateDescriptor(inheritedDescriptor);
		if (fd < 0) throw systemError(errorName(library.errno()));
		this.#descriptor = new OwnedDescriptor(fd, number => void functions.close(number));
		this.#fd = fd;
		if (inheritedDescriptor !== undefined) {
			this.#canSegment = this.#setOption(SOL_UDP, UDP_SEGMENT, 0);
			return;
		}
		const isV6 = family !== 2;
		if (bindAddress.shared) this.#setOption(SOL_SOCKET, SO_REUSEPORT, 1);
		else this.#setOption(SOL_SOCKET, SO_REUSEADDR, 0);
		// A privileged process may exceed the system's limit on socket buffers. Without the privilege, SO_RCVBUF requests as much as
		// is allowed.
		if (!this.#setOption(SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES))
			this.#setOption(SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER_BYTES);
		this.#setOption(SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER_BYTES);
		if (isV6) {
			this.#setOption(IPPROTO_IPV6, IPV6_V6ONLY, bindAddress.only6 ? 1 : 0);
			this.#setOption(IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
			this.#setOption(IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO);
		}
		this.#setOption(IPPROTO_IP, IP_PKTINFO, 1);
		this.#setOption(IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO);
		this.#setOption(SOL_UDP, UDP_GRO, 1);
		this.#canSegment = this.#setOption(SOL_UDP, UDP_SEGMENT, 0);
		if (
			(functions.bind(
				fd,
				library.addressOf(copyPinned(addressBytes, addressBytes.length)),
				addressBytes.length,
			) as number) !== 0
		) {
			const code = errorName(library.errno());
			this.#descriptor.close();
			throw systemError(code);
		}
	}

	get port(): number {
		const addressBytes = copyPinned(Buffer.alloc(SOCKET_ADDRESS_BYTES), SOCKET_ADDRESS_BYTES);
		OPTION_VALUE_BUFFER.writeInt32LE(SOCKET_ADDRESS_BYTES);
		const library = this.#library;
		library.functions.getsockname(this.#fd, library.addressOf(addressBytes), library.addressOf(OPTION_VALUE_BUFFER));
		return addressBytes.readUInt16BE(2);
	}

	/** The socket's descriptor, which the main thread duplicates. */
	get descriptor(): number {
		return this.#fd;
	}

	/** Starts delivering datagrams to `sink`. Throws an error with the system's code. */
	open(sink: DatagramSink): void {
		this.attach(sink);
		this.resume();
	}

	/** Until {@link resume} is called, delivers to `sink` only the datagrams passed to {@link deliverRelayed}. */
	attach(sink: DatagramSink): void {
		this.#sink = sink;
		this.#isPaused = true;
	}

	/**
	 * Stops reading, because another process or thread reads the same socket. Datagrams can still be sent, and {@link
	 * deliverRelayed} still delivers datagrams.
	 */
	pause(): void {
		if (this.#sink === undefined || this.#isPaused) return;
		this.#isPaused = true;
		this.#poller.remove(this.#fd);
	}

	/** Reads the socket again after {@link pause}. Throws an error with the system's code. */
	resume(): void {
		if (this.#sink === undefined || !this.#isPaused) return;
		if (!this.#poller.add(this.#fd, this)) throw systemError('EMFILE');
		this.#isPaused = false;
	}

	/** Returns a number below `count` that depends only on the peer of the datagram that is being delivered. */
	hashPeer(addressOffset: number, count: number): number {
		const { peerAddresses } = this.memory;
		let hash = 0x811c9dc5;
		for (let at = addressOffset, end = addressOffset + (peerAddresses[addressOffset] === 2 ? 8 : 24); at < end; at++) {
			hash = Math.imul(hash ^ peerAddresses[at]!, 0x01000193);
		}
		// The low bits of the hash are not distributed evenly, so the high bits are mixed in.
		return ((hash ^ (hash >>> 15)) >>> 0) % count;
	}

	/** Returns the datagram that is being delivered, in the form in which it is passed to another process or thread. */
	toRelayed(start: number, end: number, addressOffset: number): RelayedDatagram {
		const { peerAddresses, controls, received } = this.memory;
		return {
			name: peerAddresses.subarray(addressOffset, addressOffset + PEER_ADDRESS_BYTES),
			control: controls.subarray(
				this.#controlOffset,
				this.#controlOffset + Math.min(this.#controlLength, CONTROL_BYTES),
			),
			payload: received.subarray(start, end),
		};
	}

	/** Delivers a datagram that another process has read from the socket. */
	deliverRelayed({ name, control, payload }: RelayedDatagram): void {
		const { peerAddresses, controls, received } = this.memory;
		peerAddresses.fill(0, 0, PEER_ADDRESS_BYTES);
		name.copy(peerAddresses, 0, 0, PEER_ADDRESS_BYTES);
		control.copy(controls, 0, 0, CONTROL_BYTES);
		this.#controlOffset = 0;
		this.#controlLength = Math.min(control.length, CONTROL_BYTES);
		payload.copy(received, 0, 0, RECEIVED_MESSAGE_BYTES);
		this.#sink?.onDatagram(received, 0, Math.min(payload.length, RECEIVED_MESSAGE_BYTES), 0);
	}

	close(): void {
		this.flush();
		if (this.#sink !== undefined && !this.#isPaused) this.#poller.remove(this.#fd);
		this.#sink = undefined;
		this.#descriptor.close();
	}

	onReadable(): void {
		const { memory } = this;
		const { functions } = this.#library;
		let hasFailed = false;
		for (let receiveCount = 0; receiveCount < MAX_RECEIVES_PER_TURN; receiveCount++) {
			const count = functions.recvmmsg(
				this.#fd,
				memory.incomingHeadersPointer,
				MAX_RECEIVED_MESSAGES,
				DONTWAIT,
				0n,
			) as number;
			for (let i = 0; i < count; i++) this.#deliver(i);
			// The next call overwrites these datagrams, so the sink must finish with them.
			if (count > 0) this.#sink?.onDatagramsRead();
			if (this.#sink === undefined) return;
			if (count < MAX_RECEIVED_MESSAGES) {
				// Either nothing has arrived, or an error occurred after which more may follow. `errno` is not read, because code that
				// runs between two of our calls may change it. Two failures in a row mean that nothing is left.
				if (count < 0 && !hasFailed) {
					hasFailed = true;
					continue;
				}
				return;
			}
		}
		// The poller reports each arrival once, so it must report unread datagrams again.
		if (this.#sink !== undefined) this.#poller.reportAgain(this.#fd, this);
	}

	/**
	 * Returns the path of the datagram that is being delivered. `addressOffset` is the offset of the peer's address in
	 * `DatagramMemory.peerAddresses`.
	 */
	pathOf(addressOffset: number): DatagramPath {
		const peer = copyPinned(
			this.memory.peerAddresses.subarray(addressOffset, addressOffset + SOCKET_ADDRESS_BYTES),
			BIO_ADDRESS_BYTES,
		);
		const length = this.#writeSource(SOURCE_CONTROL_BUFFER, 0);
		const controlWords = wordsOf(copyPinned(SOURCE_CONTROL_BUFFER.subarray(0, length), length));
		const { controls } = this.memory;
		const at = this.#destinationMessageAt();
		let localAddress = '';
		if (at >= 0) {
			localAddress =
				controls.readInt32LE(at + 8) === IPPROTO_IP ? formatIpv4(controls, at + 24) : formatIpv6(controls, at + 16);
		}
		const peerPointer = this.#library.addressOf(peer);
		const peerBytes = peer.readUInt16LE(0) === 2 ? 16 : SOCKET_ADDRESS_BYTES;
		return { peer, peerWords: wordsOf(peer), peerPointer, peerBytes, controlWords, localAddress, withoutGsoUntil: 0 };
	}

	/** Returns the offset of the control message with the datagram's destination address, or −1 if the datagram has none. */
	#destinationMessageAt(): number {
		const { controls } = this.memory;
		const end = this.#controlOffset + this.#controlLength;
		for (let at = this.#controlOffset; at + 16 <= end; ) {
			const length = controls.readUInt32LE(at);
			if (length < 16) return -1;
			const level = controls.readInt32LE(at + 8);
			const type = controls.readInt32LE(at + 12);
			if (level === IPPROTO_IP && type === IP_PKTINFO) return at;
			if (level === IPPROTO_IPV6 && type === IPV6_PKTINFO) return at;
			at += (length + 7) & ~7;
		}
		return -1;
	}

	/** Writes the control message for sending from the address to which the datagram was sent. Returns its length. */
	#writeSource(target: Buffer, start: number): number {
		const { controls } = this.memory;
		const at = this.#destinationMessageAt();
		if (at < 0) return 0;
		if (controls.readInt32LE(at + 8) === IPPROTO_IP) {
			// in_pktinfo: interface index, our address as the source, and the destination address of the header.
			target.fill(0, start, start + 32);
			target.writeUInt32LE(16 + 12, start);
			target.writeInt32LE(IPPROTO_IP, start + 8);
			target.writeInt32LE(IP_PKTINFO, start + 12);
			controls.copy(target, start + 20, at + 20, at + 24);
			return 32;
		}
		target.fill(0, start, start + 40);
		target.writeUInt32LE(16 + 20, start);
		target.writeInt32LE(IPPROTO_IPV6, start + 8);
		target.writeInt32LE(IPV6_PKTINFO, start + 12);
		controls.copy(target, start + 16, at + 16, at + 32);
		// A link-local address is valid only on its interface, so the interface index is copied, too.
		if (controls[at + 16] === 0xfe && (controls[at + 17]! & 0xc0) === 0x80)
			controls.copy(target, start + 32, at + 32, at + 36);
		return 40;
	}

	/**
	 * Replies to the datagram that is being delivered. Replies are collected, and sent together.
	 * @param write Writes the reply at an offset, at most {@link MAX_REPLY_BYTES}, and returns its length.
	 */
	reply(addressOffset: number, write: (target: Buffer, at: number) => number): void {
		this.#replies ??= new ReplyMemory(this.#library);
		const replies = this.#replies;
		const index = replies.count++;
		const { peerAddresses } = this.memory;
		const isV4 = peerAddresses.readUInt16LE(addressOffset) === 2;
		peerAddresses.copy(
			replies.peerAddresses,
			index * PEER_ADDRESS_BYTES,
			addressOffset,
			addressOffset + PEER_ADDRESS_BYTES,
		);
		replies.vectors.writeUInt32LE(write(replies.payloads, index * MAX_REPLY_BYTES), index * 16 + 8);
		const length = this.#writeSource(replies.controls, index * CONTROL_BYTES);
		const headerOffset = index * MESSAGE_HEADER_BYTES;
		replies.messages.writeUInt32LE(isV4 ? 16 : SOCKET_ADDRESS_BYTES, headerOffset + 8);
		const controlPointer = length === 0 ? 0n : replies.controlsPointer + BigInt(index * CONTROL_BYTES);
		replies.messages.writeBigUInt64LE(controlPointer, headerOffset + 32);
		replies.messages.writeUInt32LE(length, headerOffset + 40);
		if (replies.count === MAX_REPLIES) this.flushReplies();
	}

	/** Sends the replies collected so far. Replies that the system does not accept are lost. */
	flushReplies(): void {
		const replies = this.#replies;
		if (replies === undefined || replies.count === 0) return;
		for (let doneCount = 0; doneCount < replies.count; ) {
			const at = replies.messagesPointer + BigInt(doneCount * MESSAGE_HEADER_BYTES);
			const sentCount = this.#library.functions.sendmmsg(this.#fd, at, replies.count - doneCount, DONTWAIT) as number;
			if (sentCount <= 0) this.lostCount++;
			doneCount += Math.max(sentCount, 1);
		}
		replies.count = 0;
	}

	/** Reports whether a datagram comes from the address and port of a path's peer. `addressOffset` is as in {@link pathOf}. */
	isFromPeer(path: DatagramPath, addressOffset: number): boolean {
		const { peerAddressWords } = this.memory;
		const { peerWords } = path;
		const offset = addressOffset >> 2;
		const wordCount = this.memory.peerAddresses[addressOffset] === 2 ? 2 : 6;
		for (let i = 0; i < wordCount; i++) if (peerAddressWords[offset + i] !== peerWords[i]) return false;
		return true;
	}

	/** Reports whether a datagram comes from the IP address of a path's peer. `addressOffset` is as in {@link pathOf}. */
	isFromHost(path: DatagramPath, addressOffset: number): boolean {
		const { peerAddresses, peerAddressWords } = this.memory;
		const { peer, peerWords } = path;
		if (peerAddresses[addressOffset] !== peer[0]) return false;
		const offset = addressOffset >> 2;
		// The address is in the second word for IPv4, and in the third to sixth for IPv6.
		const [start, end] = peer[0] === 2 ? [1, 2] : [2, 6];
		for (let i = start; i < end; i++) if (peerAddressWords[offset + i] !== peerWords[i]) return false;
		return true;
	}

	/** Returns a path to the port from which a datagram comes, otherwise like another path to the same IP address. */
	withPortOf(path: DatagramPath, addressOffset: number): DatagramPath {
		const peer = copyPinned(path.peer, BIO_ADDRESS_BYTES);
		this.memory.peerAddresses.copy(peer, 2, addressOffset + 2, addressOffset + 4);
		return { ...path, peer, peerWords: wordsOf(peer), peerPointer: this.#library.addressOf(peer) };
	}

	/**
	 * Makes room for datagrams of this socket in `DatagramMemory.outgoingPayloads`, sending the waiting datagrams if necessary.
	 * Returns the number of datagrams for which there is room.
	 */
	makeRoom(): number {
		const { memory } = this;
		if (memory.waitingSender !== this || memory.waitingCount === MAX_SENT_DATAGRAMS) memory.waitingSender?.flush();
		memory.waitingSender = this;
		return MAX_SENT_DATAGRAMS - memory.waitingCount;
	}

	/** Adds `count` datagrams to those that wait to be sent. Their bytes and lengths are already in {@link DatagramMemory}. */
	appendWaiting(path: DatagramPath, count: number): void {
		const { memory } = this;
		for (let i = 0; i < count; i++) memory.outgoingPaths[memory.waitingCount++] = path;
	}

	/** Sends the datagrams that wait. Datagrams that the system does not accept are lost. */
	flush(): void {
		const { memory } = this;
		if (memory.waitingSender !== this) return;
		const count = memory.waitingCount;
		const { outgoingPaths } = memory;
		memory.waitingCount = 0;
		for (let firstIndex = 0; firstIndex < count; ) {
			firstIndex = this.#sendWaiting(firstIndex, count, this.#canSegment);
			if (firstIndex === count) return;
			// A GSO write has failed: the network device does not support GSO, the segments exceed its MTU, or a queue is full.
			const path = outgoingPaths[firstIndex]!;
			let pathEnd = firstIndex + 1;
			while (pathEnd < count && outgoingPaths[pathEnd] === path) pathEnd++;
			const { lostCount } = this;
			firstIndex = this.#sendWaiting(firstIndex, pathEnd, false);
			if (this.lostCount === lostCount) path.withoutGsoUntil = performance.now() + SEGMENTATION_RETRY_MS;
		}
	}

	/**
	 * Sends the waiting datagrams from `firstIndex` to `count` (exclusive). If a GSO write fails, returns the index of its first
	 * datagram; otherwise returns `count`.
	 */
	#sendWaiting(firstIndex: number, count: number, useGso: boolean): number {
		const { memory } = this;
		const { outgoingLengths, outgoingPaths } = memory;
		let messageCount = 0;
		for (let first = firstIndex; first < count; ) {
			const segmentBytes = outgoingLengths[first]!;
			const path = outgoingPaths[first]!;
			let endIndex = first + 1;
			if (useGso && this.#mayUseGso(path)) {
				let totalBytes = segmentBytes;
				// All segments except the last must have the same size.
				while (endIndex < count && endIndex - first < MAX_SEGMENTS && outgoingPaths[endIndex] === path) {
					if (outgoingLengths[endIndex - 1] !== segmentBytes || outgoingLengths[endIndex]! > segmentBytes) break;
					totalBytes += outgoingLengths[endIndex]!;
					if (totalBytes > MAX_SEGMENTED_BYTES) break;
					endIndex++;
				}
			}
			MESSAGE_STARTS[messageCount] = first;
			this.#prepareMessage(messageCount++, first, endIndex);
			first = endIndex;
		}
		MESSAGE_STARTS[messageCount] = count;
		for (let doneCount = 0; doneCount < messageCount; ) {
			const at = memory.outgoingHeaderPointers[doneCount]!;
			const sentCount = this.#library.functions.sendmmsg(this.#fd, at, messageCount - doneCount, DONTWAIT) as number;
			if (sentCount > 0) {
				doneCount += sentCount;
				continue;
			}
			if (MESSAGE_STARTS[doneCount + 1]! - MESSAGE_STARTS[doneCount]! > 1) return MESSAGE_STARTS[doneCount]!;
			// The queue is full or the peer is unreachable. QUIC treats both as packet loss.
			this.lostCount++;
			doneCount++;
		}
		return count;
	}

	#mayUseGso(path: DatagramPath): boolean {
		if (path.withoutGsoUntil === 0) return true;
		if (performance.now() < path.withoutGsoUntil) return false;
		path.withoutGsoUntil = 0;
		return true;
	}

	/** Sends a single datagram that did not come from an engine. */
	sendOne(path: DatagramPath, datagram: Uint8Array): void {
		this.makeRoom();
		this.memory.putDatagram(datagram);
		this.appendWaiting(path, 1);
		this.flush();
	}

	#prepareMessage(index: number, firstIndex: number, end: number): void {
		const { memory } = this;
		const { outgoingLengths, outgoingVectorWords: vectors, outgoingControlWords: controls } = memory;
		const path = memory.outgoingPaths[firstIndex]!;
		for (let i = firstIndex; i < end; i++) vectors[i * 4 + 2] = outgoingLengths[i]!;
		const { controlWords } = path;
		let controlEnd = (index * CONTROL_BYTES) / 4;
		for (let i = 0; i < controlWords.length; i++) controls[controlEnd++] = controlWords[i]!;
		let controlBytes = controlWords.length * 4;
		if (end - firstIndex > 1) {
			controls[controlEnd] = 18;
			controls[controlEnd + 1] = 0;
			controls[controlEnd + 2] = SOL_UDP;
			controls[controlEnd + 3] = UDP_SEGMENT;
			controls[controlEnd + 4] = outgoingLengths[firstIndex]!;
			controlBytes += 24;
		}
		const { outgoingHeaderLongs: longs, outgoingHeaderWords: words } = memory;
		const headerLong = (index * MESSAGE_HEADER_BYTES) / 8;
		longs[headerLong] = path.peerPointer;
		words[headerLong * 2 + 2] = path.peerBytes;
		longs[headerLong + 2] = memory.outgoingVectorPointers[firstIndex]!;
		words[headerLong * 2 + 6] = end - firstIndex;
		longs[headerLong + 4] = controlBytes === 0 ? 0n : memory.outgoingControlPointers[index]!;
		words[headerLong * 2 + 10] = controlBytes;
	}

	#deliver(messageIndex: number): void {
		const { memory } = this;
		const headerWord = (messageIndex * MESSAGE_HEADER_BYTES) / 4;
		const start = messageIndex * RECEIVED_MESSAGE_BYTES;
		const end = start + memory.incomingHeaderWords[headerWord + 14]!;
		const { controlWords } = memory;
		this.#controlOffset = messageIndex * CONTROL_BYTES;
		this.#controlLength = memory.incomingHeaderWords[headerWord + 10]!;
		memory.resetIncomingHeader(messageIndex);
		let segmentBytes = 0;
		const controlEnd = (this.#controlOffset + this.#controlLength) >> 2;
		for (let at = this.#controlOffset >> 2; at + 4 <= controlEnd; ) {
			const length = controlWords[at]!;
			if (length < 16) break;
			if (controlWords[at + 2] === SOL_UDP && controlWords[at + 3] === UDP_GRO) segmentBytes = controlWords[at + 4]!;
			at += ((length + 7) & ~7) >> 2;
		}
		if (segmentBytes <= 0) segmentBytes = end - start;
		for (let at = start; at < end && this.#sink !== undefined; at += segmentBytes) {
			this.#sink.onDatagram(memory.received, at, Math.min(at + segmentBytes, end), messageIndex * PEER_ADDRESS_BYTES);
		}
	}

	#setOption(level: number, option: number, value: number): boolean {
		OPTION_VALUE_BUFFER.writeInt32LE(value, 0);
		const { functions } = this.#library;
		return (
			(functions.setsockopt(this.#fd, level, option, this.#library.addressOf(OPTION_VALUE_BUFFER), 4) as number) === 0
		);
	}
}

const SOURCE_CONTROL_BUFFER = Buffer.alloc(CONTROL_BYTES);
/** Index of the first datagram of each message, followed by the number of datagrams. */
const MESSAGE_STARTS = new Uint32Array(MAX_SENT_DATAGRAMS + 1);
const OPTION_VALUE_BUFFER = Buffer.allocUnsafeSlow(4);

/** Returns a copy, padded with zeros to `size` bytes, in memory of its own, whose address does not change. */
function copyPinned(bytes: Uint8Array, size: number): Buffer {
	const copy = Buffer.allocUnsafeSlow(size).fill(0);
	copy.set(bytes);
	return copy;
}

const ERROR_NAMES: { readonly [errno: number]: string } = {
	13: 'EACCES',
	22: 'EINVAL',
	23: 'ENFILE',
	24: 'EMFILE',
	97: 'EAFNOSUPPORT',
	98: 'EADDRINUSE',
	99: 'EADDRNOTAVAIL',
};

function errorName(errno: number): string {
	return ERROR_NAMES[errno] ?? `errno ${errno}`;
}

function systemError(code: string): NodeJS.ErrnoException {
	return Object.assign(new Error(`A UDP socket could not be bound (${code}).`), { code });
}

/*
 * Týr for C++20: the functions of tyr.h as classes. The guide is docs/guide/cpp.md; what calls do
 * and promise is in docs/design.md, and, function by function, in tyr.h. Header only: a program
 * links libtyr.
 *
 *   tyr/error.hpp        what is thrown
 *   tyr/value.hpp        bytes, numbers, versions
 *   tyr/loop.hpp         coroutines: a loop, tasks of it, and calls that they await
 *   tyr/listing.hpp      keys in order
 *   tyr/keyspace.hpp     single operations on blobs
 *   tyr/transaction.hpp  operations that take effect together
 *   tyr/snapshot.hpp     everything at one moment
 *   tyr/store.hpp        a folder or a cluster, where all of it begins
 *
 * Errors are thrown as tyr::Error, which has a kind.
 *
 * Objects own what they stand for. They move and are not copied; one that was moved from may be
 * destroyed and assigned to, and every other call of it throws InvalidArgument. Their order of
 * destruction does not matter. Any thread may use any of them, a Transaction one thread at a time.
 *
 * Bytes and keys are lent for the call, as a tyr::Slice: anything that lies in one piece.
 *
 * Calls block. Their names with `_async` behind are for coroutines: `co_await data.get_async("key")`
 * in a tyr::Task does not block the thread of its tyr::Loop.
 */
#ifndef TYR_HPP
#define TYR_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "tyr.hpp is C++20: compile with -std=c++20 or later"
#endif

#include "tyr/store.hpp"

#endif

"""Source code is recognised in whatever language it is, and documents with examples in them are not taken for it."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build

CLOJURE = """\
(ns shop.cart
  "Carts and what is in them."
  (:require [clojure.string :as string]))

(defn- weigh [items]
  (reduce + (map :weight items)))

(defn ship
  "Ships a cart, if it is not empty."
  [cart {:keys [carrier]}]
  (when-let [items (seq (:items cart))]
    (assoc cart :parcel {:weight (weigh items)
                         :carrier carrier})))
"""
HASKELL = """\
{-# LANGUAGE OverloadedStrings #-}
module Shop.Cart (ship, weigh) where

import qualified Data.Map as M
import Data.Maybe (fromMaybe)

newtype Parcel = Parcel Double

weigh :: Cart -> Double
weigh = sum . map weight . items

ship :: Cart -> Maybe Parcel
ship cart
  | null (items cart) = Nothing
  | otherwise = Just parcel
  where
    parcel = Parcel $ weigh cart
"""
OCAML = """\
open Stdlib

let rec weigh items =
  match items with
  | [] -> 0.
  | first :: rest -> first.weight +. weigh rest
;;

let ship cart =
  if cart.items = [] then None
  else
    (* only what is left in the cart *)
    let parcel = { weight = weigh cart.items } in
    Some parcel
;;

module Carrier = struct
  let name carrier = carrier.name
end
"""
R = """\
#' Ship a cart
#'
#' @param cart what to ship
#' @export
ship <- function(cart, carrier = NULL) {
  items <- cart$items
  if (length(items) == 0) {
    return(NULL)
  }
  weight <- sum(vapply(items, weigh, numeric(1)))
  list(
    weight = weight,
    carrier = carrier
  )
}

weigh <- function(item) {
  item$weight
}
"""
SHELL = """\
#!/bin/sh
# Ships what is in the cart.

weigh() {
  _total=0
  for _item in "$@"; do
    _total=$(expr "$_total" + "$_item")
  done
  echo "$_total"
}

ship() {
  if [ -z "$1" ]; then
    return 1
  fi
  weight="$(weigh "$@")"
  case "$weight" in
    0) return 1 ;;
  esac
  echo "$weight"
}
"""
LUA = """\
--- Ships a cart.
-- @param cart what to ship
function cart.ship(self, carrier)
   if #self.items == 0 then
      return nil
   end
   local weight = cart.weigh(self)
   return { weight = weight, carrier = carrier }
end

--- Weighs a cart.
function cart.weigh(self)
   local total = 0
   for _, item in ipairs(self.items) do
      total = total + item.weight
   end
   return total
end
"""
ELIXIR = """\
defmodule Shop.Cart do
  @moduledoc "Carts and what is in them."
  alias Shop.Parcel

  def ship(%{items: []}, _carrier), do: nil

  def ship(cart, carrier) do
    cart.items
    |> weigh()
    |> Parcel.new(carrier)
  end

  defp weigh(items) do
    Enum.reduce(items, 0, fn item, total ->
      total + item.weight
    end)
  end
end
"""
LISP = """\
;;; cart.el --- Carts and what is in them

;; Nothing here asks before it ships.

(require 'seq)

(defvar cart-carrier "mail"
  "Who takes the parcel.")

(defun cart-weigh (items)
  "The weight of ITEMS."
  (apply #'+ (mapcar #'cdr items)))

(defun cart-ship (items)
  "Ship ITEMS, if there are any."
  (when items
    (list :weight (cart-weigh items)
          :carrier cart-carrier)))
"""
LANGUAGES = {name.lower(): text for name, text in globals().items() if name.isupper() and isinstance(text, str)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_code_is_recognised_in_any_language(language: str) -> None:
    assert build((LANGUAGES[language] * 8).encode()).kind == "code"


@pytest.mark.parametrize("path", ["lib/cart.txtar.zig", "cart.hs", "src/Main.elm"])
def test_text_below_the_name_of_a_source_file_is_code(path: str) -> None:
    text = "The cart is weighed, then it is shipped, and nobody is asked before that happens at all.\n"
    assert build(f"==> {path} <==\n{text * 20}".encode()).kind == "code"
    assert build(f"==> notes/cart.md <==\n{text * 20}".encode()).kind != "code"


def test_a_document_with_examples_between_fences_is_no_code() -> None:
    example = "```js\nimport { ship } from 'cart';\nconst parcel = ship(cart);\nif (parcel) {\n  send(parcel);\n}\n```\n\n"
    text = "## Shipping\n\nShip a cart as soon as somebody has paid for it, and send the parcel to them.\n\n"
    assert build((3 * text + example).encode() * 20).kind == "prose"


def test_a_diff_of_code_with_dashes_before_comments_is_a_diff() -> None:
    hunk = "--- a/cart.lua\n+++ b/cart.lua\n@@ -1,3 +1,3 @@\n --- Ships a cart.\n-   return nil\n+   return false\n    end\n"
    assert build((hunk * 5).encode()).kind == "diff"

defmodule Nx.Vulkan.Error do
  @moduledoc """
  Raised when a device, a driver, a kernel pack or the registry cannot do what it was asked.

  Misuse by the caller (shapes that do not fit, a freed tensor, a negative shift) raises `ArgumentError` instead, and an
  integer divided by 0 or raised to a negative power `ArithmeticError`.

    * `:kind` - one of `:unsupported`, `:fallback_forbidden`, `:out_of_memory`, `:no_device`, `:device_lost`,
      `:io`, `:registry`, `:pack`, `:shader`, `:vulkan`
    * `:message` - a sentence to act on
  """

  defexception [:kind, :message]

  @doc false
  def raise!(kind, message) when kind in [:bad_input, :deallocated],
    do: raise(ArgumentError, message)

  def raise!(:arithmetic, message), do: raise(ArithmeticError, message)

  def raise!(kind, message), do: raise(__MODULE__, kind: kind, message: message)
end
